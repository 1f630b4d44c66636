// Package alerts tests the alerts of the chart: by promtool, that each fires when it
// should and not when it should not; that each has a runbook; and that there is
// every metric that they ask for. It needs no control plane.
package alerts
