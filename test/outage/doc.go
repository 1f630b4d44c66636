// Package outage tests what becomes of Leases and guarded objects while parts of
// FencedLease are away: its webhook configurations, its webhooks, its
// controllers, or the API server as the webhooks see it. All of that concerns
// the whole cluster, so these tests have one of their own and run one by one.
package outage
