// Package chart tests the Helm chart with the real helm: what it renders, that it
// says the same as config/, and what a release does in a real API server, with the
// manager as a process that has the rights of the chart.
package chart
