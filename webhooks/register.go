package webhooks

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The paths at which the webhooks serve; config/webhook names them.
const (
	pathMint       = "/mint"
	pathLeaseCheck = "/lease-check"
	pathStamp      = "/stamp"
	pathGuard      = "/guard"
)

// register puts the webhooks on the manager's webhook server.
func register(mgr manager.Manager, live client.Client, operator string, draining *Draining) {
	states := NewStates(live, mgr.GetCache())
	serve := func(path string, handler admission.Handler) {
		mgr.GetWebhookServer().Register(path, calls(strings.TrimPrefix(path, "/"), draining, handler))
	}
	serve(pathMint, &mint{states: states, operator: operator})
	serve(pathLeaseCheck, &leaseCheck{states: states, operator: operator})
	serve(pathStamp, stamp{})
	serve(pathGuard, &guard{
		states:   states,
		bypass:   &bypass{client: live},
		recorder: newRecorder(mgr.GetEventRecorder("fencedlease")),
	})
}
