package protocol

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// The status tells the story of the Lease, and Events tell its turns.
func TestFencedLeaseStatusFollowsTheLease(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNoHolder)
	if got := w.GetFencedLease("payments").Status; got.Token != 0 || got.Holder != (v1alpha1.Holder{}) || got.AcquireTime != nil {
		t.Errorf("the status before any term: %+v", got)
	}
	if events := w.Events("payments"); len(events) != 0 {
		t.Errorf("Events before any term: %q", events)
	}

	pod := w.Pod("worker")
	lease, err := pod.TryAcquire("payments", "worker")
	suite.Admitted(t, err)
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonHeld)
	status := w.GetFencedLease("payments").Status
	if status.Token != 1 || status.Holder != (v1alpha1.Holder{Identity: "worker", Writer: string(pod.Identity())}) ||
		!status.AcquireTime.Equal(lease.Spec.AcquireTime) {
		t.Errorf("the status in the first term: %+v", status)
	}
	w.AwaitEvent("payments", "Acquired", "token 1 for worker")

	pod.Release("payments")
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNoHolder)
	if got := w.GetFencedLease("payments").Status; got.Token != 1 || got.Holder != (v1alpha1.Holder{}) {
		t.Errorf("the status after the release: %+v", got)
	}
	w.AwaitEvent("payments", "Released", "worker released the Lease after token 1")

	pod.Acquire("payments", "next")
	w.AwaitEvent("payments", "Acquired", "token 2 for next")
	for _, event := range w.Events("payments") {
		if !strings.HasPrefix(event, "Acquired: ") && !strings.HasPrefix(event, "Released: ") {
			t.Errorf("an Event too many: %s", event)
		}
	}
}

// Conditions are about the generation that they name.
func TestFencedLeaseObservedGeneration(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	before := w.GetFencedLease("payments")
	changeSpec(w, "payments", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseDurationSeconds = 30 })
	w.Eventually("the status is about the new generation", func() error {
		fl := w.GetFencedLease("payments")
		if fl.Generation != before.Generation+1 {
			t.Fatalf("generation %d after %d", fl.Generation, before.Generation)
		}
		var errs []error
		for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionHeld} {
			c := meta.FindStatusCondition(fl.Status.Conditions, name)
			was := meta.FindStatusCondition(before.Status.Conditions, name)
			if c == nil || was == nil {
				return fmt.Errorf("no condition %s", name)
			}
			errs = append(errs, differ(c.ObservedGeneration, fl.Generation), differ(c.LastTransitionTime, was.LastTransitionTime))
		}
		return errors.Join(append(errs, differ(fl.Status.ObservedGeneration, fl.Generation))...)
	})
	// The Lease that is there keeps its own duration.
	if got := *w.Lease("payments").Spec.LeaseDurationSeconds; got != 15 {
		t.Errorf("leaseDurationSeconds %d of the Lease, want 15", got)
	}
}

// Renewals write nothing but the Lease.
func TestFencedLeaseStatusIsNotWrittenByRenewals(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "worker")
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonHeld)
	before := w.GetFencedLease("payments")

	renewOften(w, pod, "payments")
	_, err := pod.WriteLease("payments", func(l *coordinationv1.Lease) { l.Annotations["note"] = "hello" })
	suite.Admitted(t, err)
	// The controller is through with them once it has seen something later.
	w.FencedLease("later")

	if after := w.GetFencedLease("payments"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written:\n%s\nbefore\n%s", asJSON(t, after), asJSON(t, before))
	}
	pod.Acquire("payments", "next")
	w.AwaitToken("payments", 2)
}

// kubectl shows who holds what.
func TestFencedLeasePrintColumns(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("free")
	w.FencedLease("payments", func(s *v1alpha1.FencedLeaseSpec) {
		s.LeaseName, s.Enforcement = "payments.v1", v1alpha1.EnforcementWarn
	})
	w.Pod("worker").Acquire("payments.v1", "worker-0")
	w.AwaitToken("payments", 1)
	createFencedLease(w, "second", func(s *v1alpha1.FencedLeaseSpec) { s.LeaseName = "payments.v1" })
	w.AwaitCondition("second", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeaseConflict)

	table := func(args ...string) map[string][]string {
		t.Helper()
		out, err := suite.Cluster.Kubectl(w.Ctx, append([]string{"get", "--namespace=" + w.Namespace}, args...)...)
		w.Must(err)
		if out.ExitCode != 0 {
			t.Fatal(out.Stderr)
		}
		rows := map[string][]string{}
		for line := range strings.Lines(out.Stdout) {
			fields := strings.Fields(line)
			rows[strings.TrimPrefix(fields[0], "fencedlease.fencedlease.io/")] = fields[1:]
		}
		return rows
	}
	want := func(what string, got []string, want ...string) {
		t.Helper()
		for i, value := range want {
			if i >= len(got) || value != "*" && got[i] != value {
				t.Errorf("%s: the columns are %q, want %q", what, got, want)
				return
			}
		}
	}
	for _, name := range []string{"fl", "fencedlease", "fencedleases", "fencedleases.v1alpha1.fencedlease.io"} {
		rows := table(name)
		want(name, rows["NAME"], "HOLDER", "TOKEN", "READY", "AGE")
		want(name, rows["payments"], "worker-0", "1", "True", "*")
		want(name, rows["second"], "False", "*") // no holder, no token
		want(name, rows["free"], "True", "*")
		if len(rows["NAME"]) != 4 {
			t.Errorf("%s: the columns are %q", name, rows["NAME"])
		}
	}
	rows := table("fl", "--output=wide")
	want("wide", rows["NAME"], "HOLDER", "TOKEN", "READY", "LEASE", "ACQUIRED", "ENFORCEMENT", "MESSAGE", "AGE")
	want("wide", rows["payments"], "worker-0", "1", "True", "payments.v1", "*", "Warn", "acquisitions", "of", "Lease", "payments.v1", "are", "fenced")
	if second := strings.Join(rows["second"], " "); !strings.Contains(second, "wrapped by FencedLease payments") {
		t.Errorf("wide: the second shows %q", second)
	}
	// The Lease by default, too, is worth its column.
	want("wide", rows["free"], "True")

	if rows = table("fencedlease"); len(rows) != 4 {
		t.Errorf("the category shows %v", rows)
	}
}

// A Lease that was lost and is made again goes on from the status, and an Event
// says so. (The namespace controller is not asked by the webhook.)
func TestFencedLeaseLostLease(t *testing.T) {
	t.Parallel()
	w := suite.New(t)
	w.FencedLease("payments")
	pod := w.Pod("worker")
	pod.Acquire("payments", "one")
	pod.Acquire("payments", "two")
	w.AwaitToken("payments", 2)

	lost := w.Lease("payments")
	w.Must(w.As("system:serviceaccount:kube-system:namespace-controller").Delete(w.Ctx, lost))
	w.Eventually("the operator makes the Lease again", func() error {
		lease := &coordinationv1.Lease{}
		if err := w.Admin.Get(w.Ctx, client.ObjectKeyFromObject(lost), lease); err != nil {
			return err
		}
		wantKeys(t, "made again", lease, fence.Keys{FencedBy: "payments"})
		return nil
	})
	w.AwaitEvent("payments", "TokenRegressed", "a lesser token than 2", "goes on from there")
	w.AwaitCondition("payments", v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNoHolder)
	// What the status knows still counts: no term before the next is current again.
	w.Guarded("account-99", "payments", 2)
	if token := pod.Acquire("payments", "three"); token != 3 {
		t.Errorf("token %s, want 3", token)
	}
}
