package main

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func microTime(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }

func TestStateOfLease(t *testing.T) {
	for name, tc := range map[string]struct {
		spec coordinationv1.LeaseSpec
		want leaseState
	}{
		"nobody":          {coordinationv1.LeaseSpec{}, leaseFree},
		"released":        {coordinationv1.LeaseSpec{HolderIdentity: new(""), RenewTime: microTime(noon)}, leaseFree},
		"renewed in time": {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: microTime(noon.Add(-15 * time.Second)), LeaseDurationSeconds: new(int32(15))}, leaseHeld},
		"too late":        {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: microTime(noon.Add(-16 * time.Second)), LeaseDurationSeconds: new(int32(15))}, leaseExpired},
		"no duration":     {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: microTime(noon.Add(-time.Hour))}, leaseHeld},
		"never renewed":   {coordinationv1.LeaseSpec{HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15))}, leaseHeld},
		"a clock ahead":   {coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: microTime(noon.Add(time.Hour)), LeaseDurationSeconds: new(int32(15))}, leaseHeld},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOfLease(&tc.spec, noon); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestReport: the Lease is newer than the status; and what is ahead of it counts.
func TestReport(t *testing.T) {
	fl := &v1alpha1.FencedLease{ObjectMeta: metav1.ObjectMeta{Name: "payments"}, Status: v1alpha1.FencedLeaseStatus{
		Token: 6, Holder: v1alpha1.Holder{Identity: "old", Writer: "pod/old"},
	}}
	lease := func(holder, token, tokenFor string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{v1alpha1.LabelFencedBy: "payments"},
				Annotations: map[string]string{
					v1alpha1.AnnotationToken: token, v1alpha1.AnnotationTokenFor: tokenFor, v1alpha1.AnnotationTokenHolder: "pod/new",
				},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: microTime(noon), LeaseDurationSeconds: new(int32(15))},
		}
	}
	r := &reporter{now: noon}
	for name, tc := range map[string]struct {
		lease          *coordinationv1.Lease
		token          int64
		holder, writer string
		pending        bool
		state          leaseState
	}{
		"a newer term":                {lease("new", "7", "new"), 7, "new", "pod/new", false, leaseHeld},
		"a restored Lease":            {lease("new", "3", "new"), 6, "new", "pod/new", false, leaseHeld},
		"a term whose token is to be": {lease("new", "7", "old"), 7, "new", "", true, leaseHeld},
		"released":                    {lease("", "7", "old"), 7, "", "", false, leaseFree},
		"no Lease":                    {nil, 6, "old", "pod/old", false, leaseMissing},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.report(fl, tc.lease, nil)
			if got.Token != tc.token || got.Holder != tc.holder || got.Writer != tc.writer || got.TokenPending != tc.pending || got.LeaseState != tc.state {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestIsUnder(t *testing.T) {
	for note, want := range map[string]bool{
		"user ann broke the glass of FencedLease payments: ticket":                          true,
		"a write by ann was admitted only because enforcement of FencedLease payments is …": true,
		"user ann broke the glass of FencedLease payments-2: ticket":                        false,
		"something about payments": false,
	} {
		if got := isUnder(note, "payments"); got != want {
			t.Errorf("isUnder(%q) = %v", note, got)
		}
	}
}

func TestTimeOf(t *testing.T) {
	created := metav1.NewTime(noon)
	event := corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}
	if got := timeOf(&event); !got.Equal(&created) {
		t.Errorf("created at %s, seen at %s", created, got)
	}
	for later, set := range map[time.Duration]func(metav1.Time){
		1 * time.Second: func(at metav1.Time) { event.EventTime = metav1.NewMicroTime(at.Time) },
		2 * time.Second: func(at metav1.Time) { event.EventTime, event.LastTimestamp = metav1.MicroTime{}, at },
		3 * time.Second: func(at metav1.Time) {
			event.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at.Time)}
		},
	} {
		event = corev1.Event{}
		at := metav1.NewTime(noon.Add(later))
		set(at)
		if got := timeOf(&event); !got.Equal(&at) {
			t.Errorf("seen at %s, want %s", got, at)
		}
	}
}
