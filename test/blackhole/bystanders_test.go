package blackhole

import (
	"context"
	"errors"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/test/suite"
)

// The writes that need no webhook.
const (
	unfencedRenewal   = "the renewal of an unfenced Lease"
	fencedRenewal     = "the renewal of a fenced Lease"
	usersRenewal      = "the same by a user with a certificate"
	nodesRenewal      = "the heartbeat of a node"
	schedulersRenewal = "the renewal of kube-scheduler's Lease"
	kubeSystemWrite   = "a ConfigMap of kube-system"
)

// bystanders are those writes, each by whom it is made in a cluster. The manager does
// not run, so nobody else writes these objects.
func bystanders(s *stage) []kind {
	w := s.World
	w.T.Helper()
	unfenced := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "unfenced"}}
	suite.Take(unfenced, "holder")
	w.Must(s.pod.Create(w.Ctx, unfenced))

	name := w.Namespace
	config, err := suite.Cluster.UserConfig("system:node:"+name, "system:nodes")
	w.Must(err)
	kubelet := w.Actor("kubelet", config)
	// In a cluster the node authorizer lets it.
	leaveNothing(w, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + name}},
	})
	heartbeat := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	suite.Take(heartbeat, name)
	leaveNothing(w, heartbeat)

	config, err = suite.Cluster.UserConfig("system:kube-scheduler")
	w.Must(err)
	scheduler := w.Actor("kube-scheduler", config)
	election := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}}
	suite.Take(election, "host")
	leaveNothing(w, election)

	status := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
	leaveNothing(w, status)
	writes := 0

	all := []kind{
		renewal(unfencedRenewal, s.pod, unfenced),
		renewal(fencedRenewal, s.pod, w.Lease("payments")),
		renewal(usersRenewal, s.user, w.Lease("orders")),
		renewal(nodesRenewal, kubelet, heartbeat),
		renewal(schedulersRenewal, scheduler, election),
		{kubeSystemWrite, func(ctx context.Context) error {
			writes++
			status.Data = map[string]string{"writes": strconv.Itoa(writes)}
			return w.Admin.Update(ctx, status)
		}},
	}
	for _, write := range all {
		// Rights that were just given are heeded a little later.
		w.Eventually(write.name+" is admitted", func() error { return write.send(w.Ctx) })
	}
	return all
}

// renewal changes nothing but the time, and reads nothing.
func renewal(name string, who *suite.Actor, lease *coordinationv1.Lease) kind {
	return kind{name, func(ctx context.Context) error {
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		return who.Update(ctx, lease)
	}}
}

// leaveNothing creates an object in a namespace that tests share, until the end of
// this one.
func leaveNothing(w *suite.World, object client.Object) {
	w.T.Helper()
	w.Must(w.Admin.Create(w.Ctx, object))
	w.T.Cleanup(func() {
		if err := w.Admin.Delete(w.Ctx, object); err != nil {
			w.T.Error(errors.New(object.GetName()+" stays"), err)
		}
	})
}
