package cluster

import (
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ServiceAddress is the address of the Service kubernetes: the first one of the range
// that envtest gives to Services.
const ServiceAddress = "10.0.0.1"

// servePods makes the API server what Pods expect: it is at the address of its Service,
// with a certificate for it; it goes to the Pods behind a Service by itself, since there
// is no kube-proxy; and every Pod gets a token.
func servePods(server *envtest.APIServer) {
	server.ListenAddr = envtest.ListenAddr{Address: ServiceAddress, Port: "443"}
	server.Configure().
		Set("enable-aggregator-routing", "true").
		Set("advertise-address", ServiceAddress). // a network namespace has no route by which to find one
		Disable("disable-admission-plugins")      // envtest turns off that of service accounts
}
