package plugin

import (
	"encoding/json"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// TestStatusOfAll: a table of the FencedLeases, in every format.
func TestStatusOfAll(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	ann := at(w, w.Admin)
	ann.fence("status").warns("No FencedLeases found in namespace " + w.Namespace)

	w.FencedLease("ledger")
	w.FencedLease("payments")
	w.Pod("first").Acquire("payments", "first")
	w.AwaitToken("payments", 1)
	holdForADay(w)

	ann.fence("status").prints("NAME", "HOLDER", "TOKEN", "READY", "RENEWED", "AGE", "ledger <none> <none> True", "payments first 1 True").lacks("ENFORCEMENT")
	ann.fence("status", "-o", "wide").prints("ENFORCEMENT", "Held", "Free", "Deny", "pod/")
	ann.fence("status", "--no-headers").prints("payments").lacks("NAME")
	ann.fence("status", "-o", "name").prints("fencedlease.fencedlease.io/ledger\nfencedlease.fencedlease.io/payments\n")
	ann.fence("status", "-A").prints("NAMESPACE", w.Namespace)
	ann.fence("status", "-o", "yaml").prints("kind: LeaseStatusList", "apiVersion: cli.fencedlease.io/v1", "holder: first", "token: 1")
	ann.fence("status", "-o", `jsonpath={.items[1].name}/{.items[1].token}`).prints("payments/1")
	ann.fence("status", "-o", "csv").fails("error: ", "csv", "allowed formats are")
	ann.fence("status", "nothing").fails(`error: FencedLease "nothing" does not exist in namespace "` + w.Namespace)
	ann.fence("status", "-A", "payments").fails("with -n instead of -A")
}

// holdForADay has the Lease last, however slow the machine is.
func holdForADay(w *suite.World) {
	w.T.Helper()
	_, err := w.Admin.WriteLease("payments", func(lease *coordinationv1.Lease) { *lease.Spec.LeaseDurationSeconds = 86400 })
	w.Must(err)
}

// leaseStatus is the JSON of `status NAME`, as its readers know it.
type leaseStatus struct {
	APIVersion, Kind     string
	Name, Namespace      string
	LeaseName            string
	Token                int64
	Holder, Writer       string
	Ready, Reason        string
	Enforcement          string
	LeaseState           string
	LeaseDurationSeconds int
	AcquireTime          time.Time
	RenewTime            time.Time
	Objects              []struct {
		APIVersion, Kind, Name string
		Mark                   int64
		State, Bypass          string
	}
	Events   []struct{ Type, Reason, Object, Message string }
	Unlisted []struct{ Resource, Reason string }
}

func (r result) leaseStatus() leaseStatus {
	r.t.Helper()
	var status leaseStatus
	if err := json.Unmarshal([]byte(r.Stdout), &status); err != nil {
		r.t.Fatalf("%s: %v\n%s", r.command, err, r.Stdout)
	}
	return status
}

// TestStatusOfOne: what is under a FencedLease, and how it stands to the current
// token; what happened; what may not be seen.
func TestStatusOfOne(t *testing.T) {
	w, ann := secondTerm(t)
	widgets(w)
	w.Guarded("sealed", "payments", 2)
	createWidget(w, "front", suite.GuardedBy("payments"), suite.Token("2"))
	w.FencedLease("ledger")
	w.Guarded("unmarked", "ledger", 0)
	w.Must(w.Admin.Modify("state", suite.Annotation(v1alpha1.AnnotationBypass, "ticket 42")))
	w.Eventually("the bypass has an Event, and a refusal", func() error {
		suite.Refused(t, w.Admin.Modify("state", suite.Balance("0"), suite.Annotation(v1alpha1.AnnotationWrite, "1/late")), 412, fence.ReasonStale)
		for _, reason := range []string{"FenceBypassed", "FenceRefused"} {
			if ann.kubectl("", "get", "events", "--field-selector=reason="+reason, "-o", "name").Stdout == "" {
				return errNotYet
			}
		}
		return nil
	})

	holdForADay(w)
	ann.fence("status", "payments").prints(
		"FencedLease: payments (namespace "+w.Namespace+")", "payments, held for another", "second", "Token: 2", "Ready: True",
		"configmap/sealed 2 sealed", "configmap/state 1 behind", "widget.example.com/front 2 sealed",
		"FenceBypassed", "ticket 42", "FenceRefused", "412 FencingTokenStale", "Acquired", "token 2 for second").lacks("unmarked")
	ann.fence("status", "payments", "-o", "wide").prints("BYPASS", "ticket 42")
	ann.fence("status", "payments", "-o", "name").prints("configmap/sealed\nconfigmap/state\nwidget.example.com/front\n")
	ann.fence("status", "ledger").prints("free: nobody holds it", "configmap/unmarked <none> unmarked").lacks("ticket 42")

	got := ann.fence("status", "payments", "-o", "json").prints().leaseStatus()
	if got.Kind != "LeaseStatus" || got.APIVersion != "cli.fencedlease.io/v1" || got.Name != "payments" || got.Namespace != w.Namespace ||
		got.LeaseName != "payments" || got.Token != 2 || got.Holder != "second" || got.Writer == "" || got.Ready != "True" || got.Reason != "Fenced" ||
		got.LeaseState != "Held" || got.LeaseDurationSeconds != 86400 || got.RenewTime.IsZero() || got.AcquireTime.IsZero() || got.Enforcement != "Deny" {
		t.Errorf("the status is %+v", got)
	}
	if len(got.Objects) != 3 || got.Objects[1].Name != "state" || got.Objects[1].Mark != 1 || got.Objects[1].State != "behind" ||
		got.Objects[1].Bypass != "ticket 42" || got.Objects[2].Kind != "Widget" || got.Objects[2].APIVersion != "example.com/v1" {
		t.Errorf("the objects are %+v", got.Objects)
	}
	if len(got.Unlisted) != 0 || len(got.Events) == 0 {
		t.Errorf("unlisted are %+v, events %+v", got.Unlisted, got.Events)
	}

	// Not renewed for longer than it lasts.
	_, err := w.Admin.WriteLease("payments", func(lease *coordinationv1.Lease) {
		then := metav1.NowMicro().Add(-48*time.Hour - time.Minute)
		lease.Spec.RenewTime = &metav1.MicroTime{Time: then}
	})
	w.Must(err)
	ann.fence("status", "payments").prints("expired 24h ago: anybody may take it", "Renewed: 2d ago")

	// Somebody who may not list everything is told so.
	viewer, err := suite.Cluster.UserConfig(w.Namespace + ":viewer")
	w.Must(err)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "viewer"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", "fencedlease.io"}, Resources: []string{"configmaps", "fencedleases"}, Verbs: []string{"get", "list"},
		}},
	}
	w.Must(w.Admin.Create(w.Ctx, role))
	w.Must(w.Admin.Create(w.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.Namespace + ":viewer"}},
	}))
	vera := at(w, w.Actor("viewer", viewer))
	vera.fence("status", "payments").warns(
		"Note: not looked at: secrets: ", "Note: not looked at: widgets.example.com: ", "Note: not looked at: leases.coordination.k8s.io/payments: ",
		"Note: not looked at: events: ", "forbidden").has(vera.fence("status", "payments").Stdout, "configmap/state", "Token: 2")
	vera.fence("status").warns("Note: when the Leases were renewed is not known")
}
