package suite

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/test/cluster"
)

// Patience is how long Eventually waits: long, for a busy machine. It is never
// waited out when things go well.
const Patience = 60 * time.Second

// World is a namespace of a test's own, and who acts in it.
type World struct {
	T         *testing.T
	Ctx       context.Context
	Namespace string
	Admin     *Actor // a cluster administrator
	cluster   *cluster.Cluster
}

// New makes a namespace for a test.
func New(t *testing.T) *World {
	t.Helper()
	return In(t, Cluster)
}

// In makes a namespace for a test in a cluster of its own.
func In(t *testing.T, in *cluster.Cluster) *World {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	t.Cleanup(cancel)
	w := &World{T: t, Ctx: ctx, Namespace: namespaceName(t), cluster: in}
	w.Admin = w.Actor("admin", in.Admin)
	w.Must(w.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	// The test's service accounts may do anything in it, bypass included.
	w.Must(w.Admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "workers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + w.Namespace}},
	}))
	// And they may carry our user extras, and those that their tokens have.
	w.Must(w.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-impersonate"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: impersonator}},
	}))
	return w
}

// impersonator is the service account whose Pods may carry user extras.
const impersonator = "impersonator"

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func namespaceName(t *testing.T) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	return fmt.Sprintf("%.40s-%s", strings.TrimPrefix(name, "test"), rand.String(5))
}

// Must ends the test if a step of its story failed that is not what it is about.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Actor is somebody who makes requests. Its client asks the API server each time.
type Actor struct {
	client.Client

	Config *rest.Config
	Name   string
	world  *World
}

// Actor gives a client to somebody.
func (w *World) Actor(name string, config *rest.Config) *Actor {
	w.T.Helper()
	scheme := runtime.NewScheme()
	w.Must(clientgoscheme.AddToScheme(scheme))
	w.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	w.Must(err)
	return &Actor{Client: c, Config: config, Name: name, world: w}
}

// Pod is a process in a Pod of that name, with every right in the namespace. Its
// writer identity is pod/<uid>.
func (w *World) Pod(name string) *Actor {
	w.T.Helper()
	config, err := w.cluster.PodConfig(w.Ctx, w.Namespace, "worker", name)
	w.Must(err)
	return w.Actor(name, config)
}

// PodWithExtra is a Pod that carries user extras beside those of its token.
func (w *World) PodWithExtra(name string, extra map[string][]string) *Actor {
	w.T.Helper()
	config, err := w.cluster.PodConfig(w.Ctx, w.Namespace, impersonator, name)
	w.Must(err)
	config, err = cluster.ImpersonateExtra(w.Ctx, config, extra)
	w.Must(err)
	return w.Actor(name, config)
}

// ServiceAccount is a process with a token of a service account that is bound to
// no Pod, with every right in the namespace. Its writer identity is user/<name>.
func (w *World) ServiceAccount(name string) *Actor {
	w.T.Helper()
	config, err := w.cluster.ServiceAccountConfig(w.Ctx, w.Namespace, name)
	w.Must(err)
	return w.Actor(name, config)
}

// User is somebody with a client certificate and every right in the namespace
// but bypass and impersonation. Its writer identity is certificate/<hash>.
func (w *World) User(name string) *Actor {
	w.T.Helper()
	name = w.Namespace + ":" + name
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: strings.ReplaceAll(name, ":", "-")},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"*"}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
		}},
	}
	w.Must(w.Admin.Create(w.Ctx, role))
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	config, err := w.cluster.UserConfig(name)
	w.Must(err)
	return w.Actor(name, config)
}

// WithExtra is the actor with user extras: a claim, or the reason of a bypass.
func (a *Actor) WithExtra(extra map[string][]string) *Actor {
	a.world.T.Helper()
	config, err := cluster.ImpersonateExtra(a.world.Ctx, a.Config, extra)
	a.world.Must(err)
	return a.world.Actor(a.Name, config)
}

// WithClaim is the actor with a token in its user extra.
func (a *Actor) WithClaim(token string) *Actor {
	a.world.T.Helper()
	return a.WithExtra(map[string][]string{v1alpha1.ExtraToken: {token}})
}

// Key is the name of an object of the test's namespace.
func (w *World) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: name}
}

// Eventually tries until there is no error, or fails the test with the last.
func (w *World) Eventually(what string, try func() error) {
	w.T.Helper()
	var err error
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	w.T.Fatalf("%s: still not so after %s: %v", what, Patience, err)
}
