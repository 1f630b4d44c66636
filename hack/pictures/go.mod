// pictures, which draws the dashboard of the chart from a Prometheus. A module of its
// own: nothing else draws.
module github.com/fencedlease/fencedlease/hack/pictures

go 1.26.0

require (
	git.sr.ht/~sbinet/gg v0.8.0
	github.com/go-fonts/liberation v0.3.3
	golang.org/x/image v0.48.0
)

require (
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
