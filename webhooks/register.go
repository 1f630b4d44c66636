package webhooks

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// The paths at which the webhooks serve; config/webhook names them.
const (
	pathMint       = "/mint"
	pathLeaseCheck = "/lease-check"
	pathStamp      = "/stamp"
	pathGuard      = "/guard"
)

// register puts the webhooks on the manager's webhook server.
func register(mgr manager.Manager, live client.Client, operator string) {
	states := NewStates(live, mgr.GetCache())
	server := mgr.GetWebhookServer()
	server.Register(pathMint, &webhook.Admission{Handler: &mint{states: states, operator: operator}})
	server.Register(pathLeaseCheck, &webhook.Admission{Handler: &leaseCheck{states: states, operator: operator}})
	server.Register(pathStamp, &webhook.Admission{Handler: stamp{}})
	server.Register(pathGuard, &webhook.Admission{Handler: &guard{
		states:   states,
		bypass:   &bypass{client: live},
		recorder: newRecorder(mgr.GetEventRecorder("fencedlease")),
	}})
}
