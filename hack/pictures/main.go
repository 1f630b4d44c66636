// Command pictures draws a Grafana dashboard with what a Prometheus has, one PNG for
// each row, so that a page can show what the dashboard looks like.
//
//	pictures --dashboard FILE --prometheus URL --from TIME --to TIME --out DIR
//
// It is no Grafana: it knows the kinds of panels, units and options that our dashboard
// uses, and fails at others. A panel without data is an error, unless --allow-empty
// names it: a picture of nothing shows nothing. No picture is written if one fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run does what the command line says.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("pictures", flag.ContinueOnError)
	file := flags.String("dashboard", "", "The `file` with the dashboard, Grafana's JSON.")
	url := flags.String("prometheus", "http://127.0.0.1:9090", "The `URL` of Prometheus.")
	var from, to moment
	flags.Var(&from, "from", "The `time` at which the pictures begin, in seconds since 1970 or as in RFC 3339.")
	flags.Var(&to, "to", "The `time` at which they end. Defaults to now.")
	rate := flags.Duration("rate-interval", 15*time.Second, "What $__rate_interval is: some `times` the interval at which metrics are read.")
	out := flags.String("out", ".", "The `directory` of the pictures.")
	empty := titles{}
	flags.Var(empty, "allow-empty", "The `title` of a panel that may have no data. May be given several times.")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if to.IsZero() {
		to.Time = time.Now()
	}
	if *file == "" || from.IsZero() || flags.NArg() > 0 || !from.Before(to.Time) {
		flags.Usage()
		return errors.New("say which --dashboard, and --from when --to when")
	}

	board, err := readDashboard(*file)
	if err != nil {
		return fmt.Errorf("%s: %w", *file, err)
	}
	if err := empty.check(board); err != nil {
		return err
	}
	source := &source{url: strings.TrimSuffix(*url, "/"), from: from.Time, to: to.Time, rateInterval: *rate}
	if err := source.learn(ctx, board); err != nil {
		return err
	}
	pictures := map[string][]byte{}
	var errs []error
	for _, row := range board.rows() {
		picture, err := drawRow(ctx, source, row, empty)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pictures[slug(row.title)+".png"] = picture
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o750); err != nil {
		return err
	}
	for name, picture := range pictures {
		if err := os.WriteFile(filepath.Join(*out, name), picture, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// moment is a time as a flag.
type moment struct{ time.Time }

// Set takes seconds since 1970, or RFC 3339.
func (m *moment) Set(text string) (err error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		m.Time = time.UnixMilli(int64(seconds * 1000))
		return nil
	}
	m.Time, err = time.Parse(time.RFC3339, text)
	return err
}

// titles are those of panels, as a flag.
type titles map[string]bool

// String is for the usage.
func (t titles) String() string { return "" }

// Set adds one.
func (t titles) Set(title string) error {
	t[title] = true
	return nil
}

// check that there are panels of these titles.
func (t titles) check(board *dashboard) error {
	there := map[string]bool{}
	for _, panel := range board.Panels {
		there[panel.Title] = true
	}
	for title := range t {
		if !there[title] {
			return fmt.Errorf("--allow-empty: there is no panel %q", title)
		}
	}
	return nil
}

// slug is a title as the name of a file.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == '\'':
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}
