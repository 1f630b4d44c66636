package examples

import "testing"

// Two replicas of the manager: the second goes on where the first has released the
// Lease, and ends when it loses it.
func TestManager(t *testing.T) {
	w := scene(t)
	manager := build(t, "examples/manager")
	first := start(w, "first", manager, "-namespace="+w.Namespace)
	w.AwaitToken("payments", 1)
	want(w, "50000", "1")
	stored(w, "balance", "50000", "1")

	second := start(w, "second", manager, "-namespace="+w.Namespace)
	w.Must(first.Stop(grace))
	w.AwaitToken("payments", 2)
	want(w, "60000", "2")
	stored(w, "balance", "60000", "2")

	takeOver(w)
	second.fails()
	second.says("the term with token 2")
	second.says("a newer token was handed out")
}

// The stock elector knows its token; its late write is made, and refused.
func TestElector(t *testing.T) {
	w := scene(t)
	p := start(w, "first", build(t, "examples/elector"), "-namespace="+w.Namespace)
	p.says("leads with token 1")
	p.says("wrote 2")
	takeOver(w)
	p.fails()
	p.says(`token 1 is stale: the newest is 2, held by "successor"`)
}
