// Package alerts tests the alerts of the chart and its dashboard: by promtool, that
// each alert fires when it should and not when it should not, and that each panel's
// expressions are PromQL; that each alert has a runbook, to which a panel leads; that
// each row has a picture; and that there is every metric that they ask for. It needs no
// control plane.
package alerts
