package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const boardFile = "../../charts/fencedlease/files/dashboard.json"

// prometheus answers every query with a few series, but those that contain a text.
func prometheus(t *testing.T, without string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		var data any = []string{"fencedlease-metrics"}
		switch {
		case strings.HasSuffix(r.URL.Path, "/query_range"):
			data = map[string]any{"result": results(query, without, number64(r, "start"), number64(r, "end"), number64(r, "step"))}
		case strings.HasSuffix(r.URL.Path, "/query"):
			data = map[string]any{"result": results(query, without, number64(r, "time"), number64(r, "time"), 1)}
		}
		if strings.Contains(query, "$") {
			w.WriteHeader(http.StatusBadRequest)
			data = nil
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "error": "is what is wrong"})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func number64(r *http.Request, name string) float64 {
	value, _ := strconv.ParseFloat(strings.TrimSuffix(r.FormValue(name), "s"), 64)
	return value
}

func results(query, without string, from, to, step float64) []any {
	if without != "" && strings.Contains(query, without) {
		return nil
	}
	var found []any
	for i, le := range []string{"0.001", "0.01", "+Inf"} {
		var values []any
		for at := from; at <= to; at += step {
			values = append(values, []any{at, fmt.Sprint(float64(i+1) * (2 + math.Sin(at/20)))})
		}
		found = append(found, map[string]any{
			"metric": map[string]string{"le": le, "pod": fmt.Sprintf("pod-%d", i), "name": "guard.fencedlease.io"},
			"values": values, "value": values[0],
		})
	}
	return found
}

// draw the real dashboard.
func draw(t *testing.T, url, out string, args ...string) error {
	t.Helper()
	return run(t.Context(), append([]string{
		"--dashboard=" + boardFile, "--prometheus=" + url, "--out=" + out,
		"--from=1796128800", "--to=2026-12-01T12:45:00Z",
	}, args...))
}

// TestPictures: each row of the dashboard has one, and they can be repeated.
func TestPictures(t *testing.T) {
	board, err := readDashboard(boardFile)
	if err != nil {
		t.Fatal(err)
	}
	url := prometheus(t, "")
	first, second := t.TempDir(), t.TempDir()
	for _, out := range []string{first, second} {
		if err := draw(t, url, out); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(first, "*"))
	if err != nil || len(files) != len(board.rows()) {
		t.Errorf("%d rows, and the pictures %q (%v)", len(board.rows()), files, err)
	}
	for _, row := range board.rows() {
		name := slug(row.title) + ".png"
		picture, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || !bytes.Equal(picture, again) {
			t.Errorf("%s: a second one is another (%v)", name, err)
		}
		decoded, err := png.Decode(bytes.NewReader(picture))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if size := decoded.Bounds().Size(); size.X != pictureWidth*density || size.Y < 200 {
			t.Errorf("%s has the size %s", name, size)
		}
	}
}

// TestEmpty: a panel without data is an error that says which, and leaves no picture;
// but where it is allowed.
func TestEmpty(t *testing.T) {
	url := prometheus(t, "fencedlease_guard_seals_total")
	out := t.TempDir()
	err := draw(t, url, out)
	if err == nil || !strings.Contains(err.Error(), "Verdicts, Objects sealed: it has no data") || strings.Count(err.Error(), "no data") != 1 {
		t.Errorf("the error is %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(out, "*")); err != nil || len(files) > 0 {
		t.Errorf("there are %q (%v)", files, err)
	}
	if err := draw(t, url, out, "--allow-empty=Objects sealed"); err != nil {
		t.Error(err)
	}
	if err := draw(t, url, out, "--allow-empty=Objects"); err == nil || !strings.Contains(err.Error(), `no panel "Objects"`) {
		t.Errorf("the error is %v", err)
	}
}

// TestErrors: what Prometheus complains of is passed on, with the panel.
func TestErrors(t *testing.T) {
	data, err := os.ReadFile(boardFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ old, with, want string }{
		"a variable that is not there": {"$__range", "$nothing", "is what is wrong"},
		"a unit":                       {`"unit": "wps"`, `"unit": "light-years"`, `no unit "light-years"`},
		"a color":                      {`"color": "green"`, `"color": "octarine"`, `no color "octarine"`},
		"a kind of panel":              {`"type": "heatmap"`, `"type": "pie"`, `no kind of panel is "pie"`},
		"a transformation":             {`"id": "organize"`, `"id": "shuffle"`, `a transformation "shuffle"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "board.json")
			if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte(tc.old), []byte(tc.with)), 0o600); err != nil {
				t.Fatal(err)
			}
			err := draw(t, prometheus(t, ""), t.TempDir(), "--dashboard="+file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--dashboard=x"}, {"--dashboard=x", "--from=2", "--to=1"}, {"--dashboard=x", "--from=yesterday"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}

func TestFormat(t *testing.T) {
	none, two := 0, 2
	for _, tc := range []struct {
		value    float64
		unit     string
		decimals *int
		want     string
	}{
		{0, "s", nil, "0 s"}, {0.00042, "s", nil, "420 µs"}, {0.0123, "s", nil, "12.3 ms"}, {2.5, "s", nil, "2.5 s"},
		{150, "s", nil, "2.5 min"}, {7200, "s", nil, "2 h"}, {90 * 86400, "s", nil, "90 days"}, {10 * 31557600, "s", nil, "10 years"},
		{0, "bytes", nil, "0 B"}, {40 << 20, "bytes", nil, "40 MiB"},
		{37123, "short", &none, "37 K"}, {12, "short", &none, "12"}, {0, "short", nil, "0"},
		{0.9234, "none", &two, "0.92"}, {125.4, "wps", nil, "125 wr/s"}, {0.0714, "reqps", nil, "0.0714 req/s"}, {0.125, "percentunit", nil, "12.5%"},
		{1796128935000, "dateTimeAsIso", nil, "2026-12-01 12:42:15"},
	} {
		if got, err := format(tc.value, tc.unit, tc.decimals); err != nil || got != tc.want {
			t.Errorf("%g %s is %q (%v), want %q", tc.value, tc.unit, got, err, tc.want)
		}
	}
}

func TestAxes(t *testing.T) {
	for name, tc := range map[string]struct {
		got  axis
		want []float64
	}{
		"from nothing":    {linearAxis(0, 163, 4, "wps", false), []float64{0, 50, 100, 150, 200}},
		"nothing at all":  {linearAxis(0, 0, 2, "none", false), []float64{0, 0.5, 1}},
		"whole numbers":   {linearAxis(0, 1, 5, "none", true), []float64{0, 1}},
		"binary":          {linearAxis(0, 45<<20, 4, "bytes", false), []float64{0, 20 << 20, 40 << 20, 60 << 20}},
		"days":            {linearAxis(0, 365*86400, 2, "s", false), []float64{0, 200 * 86400, 400 * 86400}},
		"powers of ten":   {logAxis(0.001, 10), []float64{0.001, 0.01, 0.1, 1, 10}},
		"between powers":  {logAxis(0.002, 0.9), []float64{0.001, 0.01, 0.1, 1}},
		"not from nought": {linearAxis(41, 44, 3, "none", true), []float64{41, 42, 43, 44}},
	} {
		if len(tc.got.ticks) != len(tc.want) {
			t.Errorf("%s: ticks %v, want %v", name, tc.got.ticks, tc.want)
			continue
		}
		for i, want := range tc.want {
			if math.Abs(tc.got.ticks[i]-want) > 1e-9*want {
				t.Errorf("%s: ticks %v, want %v", name, tc.got.ticks, tc.want)
			}
		}
	}
}

func TestTimeTicks(t *testing.T) {
	from := time.Date(2026, 12, 1, 12, 42, 15, 0, time.UTC)
	ticks, layout := timeTicks(from, from.Add(5*time.Minute), 5)
	if len(ticks) != 5 || layout != "15:04" || ticks[0].Format(layout) != "12:43" {
		t.Errorf("%v as %s", ticks, layout)
	}
}

func TestLegend(t *testing.T) {
	name := legend("{{webhook}} p99, {{ missing }}", map[string]string{"webhook": "guard.fencedlease.io"})
	p := &panel{}
	data := `{"transformations": [{"id": "renameByRegex", "options": {"regex": "(.*)[.]fencedlease[.]io(.*)", "renamePattern": "$1$2"}}]}`
	if err := json.Unmarshal([]byte(data), p); err != nil {
		t.Fatal(err)
	}
	if got, err := p.rename(name); err != nil || got != "guard p99, " {
		t.Errorf("%q (%v)", got, err)
	}
}

func TestSheet(t *testing.T) {
	one := func(value float64, lease string) series {
		return series{labels: map[string]string{"lease": lease, "namespace": "shop"}, points: []point{{value: value}}}
	}
	s := sheetOf([]target{{RefID: "A"}, {RefID: "B"}}, [][]series{{one(5, "billing"), one(6, "payments")}, {one(1, "payments")}})
	organize := transformation{ID: "organize"}
	organize.Options.ExcludeByName = map[string]bool{"namespace": true}
	organize.Options.IndexByName = map[string]int{"lease": 0, "Value #B": 1, "Value #A": 2}
	organize.Options.RenameByName = map[string]string{"Value #A": "token", "Value #B": "leaders"}
	s, err := s.transform([]transformation{{ID: "merge"}, organize})
	if err != nil {
		t.Fatal(err)
	}
	s.sort("token", true)
	got := fmt.Sprint(s)
	if want := "{[lease leaders token] [map[leaders:1 lease:payments token:6] map[lease:billing token:5]]}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBuckets(t *testing.T) {
	at := time.Unix(1, 0)
	cumulative := func(le string, value float64) series {
		return series{labels: map[string]string{"le": le}, points: []point{{at, value}}}
	}
	all, err := buckets([]series{cumulative("+Inf", 9), cumulative("0.1", 7), cumulative("0.01", 4)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{4, 3, 2} {
		if got := last(all[i].series); got != want {
			t.Errorf("bucket up to %g has %g, want %g", all[i].le, got, want)
		}
	}
}

func TestSlug(t *testing.T) {
	for title, want := range map[string]string{"Overview": "overview", "The API server's view": "the-api-servers-view", "Controller, replicas!": "controller-replicas"} {
		if got := slug(title); got != want {
			t.Errorf("%q is %q", title, got)
		}
	}
}
