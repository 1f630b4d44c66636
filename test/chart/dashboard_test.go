package chart

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// maxDashboard is how large the dashboard may be, in bytes: a ConfigMap has a limit of
// 1 MiB, and what applies it may write all of it once more into an annotation, which has
// one of 256 KiB.
const maxDashboard = 200_000

// TestDashboard: Grafana gets the file as it is, but for the runbooks and half of the
// timeout, where they are others.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile(path(t, "charts", "fencedlease", "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := string(data)
	const runbooks, half = "https://github.com/fencedlease/fencedlease/blob/main/docs/runbooks", `"value": 2.5`
	if !strings.Contains(file, runbooks+"/") || !strings.Contains(file, half+"\n") {
		t.Fatal("it leads to no runbook, or knows nothing of the timeout")
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"by default":       {want: file},
		"other runbooks":   {[]string{"--set=prometheusRule.runbookURL=https://runbooks.example.com/"}, strings.ReplaceAll(file, runbooks, "https://runbooks.example.com")},
		"another timeout":  {[]string{"--set=webhooks.timeoutSeconds=3"}, strings.ReplaceAll(file, half, `"value": 1.5`)},
		"an even timeout":  {[]string{"--set=webhooks.timeoutSeconds=4"}, strings.ReplaceAll(file, half, `"value": 2`)},
		"labels of others": {[]string{"--set-string=commonLabels.grafana_dashboard=0"}, file},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := render(t, append(tc.args, "--set=dashboard.enabled=true")...).get(t, dashboard)
			files, ok := field(object, "data").(map[string]any)
			if !ok || len(files) != 1 {
				t.Fatalf("it has the files %v", files)
			}
			got, _ := files["fencedlease.json"].(string)
			if got != tc.want {
				t.Errorf("it has another dashboard:\n%s", got)
			}
			if !json.Valid([]byte(got)) {
				t.Error("it is no JSON")
			}
			if len(got) > maxDashboard {
				t.Errorf("it has %d bytes, more than %d", len(got), maxDashboard)
			}
		})
	}
}
