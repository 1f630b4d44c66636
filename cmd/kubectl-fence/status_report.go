package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/internal/keys"
)

// leaseState is how a Lease stands, by its own times and the clock of whoever
// looks: for people only, since the protocol trusts no clock.
type leaseState string

const (
	leaseHeld    leaseState = "Held"    // and renewed in time
	leaseExpired leaseState = "Expired" // held, but not renewed in time: anybody may take it
	leaseFree    leaseState = "Free"    // nobody holds it
	leaseMissing leaseState = "Missing" // it does not exist
	leaseUnknown leaseState = "Unknown" // it could not be read
)

// leaseReport is what `status` tells of a FencedLease. Its JSON is stable: fields
// may be added.
type leaseReport struct {
	metav1.TypeMeta `json:",inline"`

	Name      string      `json:"name"`
	Namespace string      `json:"namespace"`
	Created   metav1.Time `json:"creationTimestamp"`
	LeaseName string      `json:"leaseName"`

	Token int64 `json:"token,omitempty"` // the current one; absent before the first term
	// TokenPending says that the holder gets a token with its next renewal: the
	// current one is of an earlier term.
	TokenPending bool `json:"tokenPending,omitempty"`

	Holder string `json:"holder,omitempty"`
	Writer string `json:"writer,omitempty"` // the writer identity to which the token was minted

	Ready       metav1.ConditionStatus `json:"ready"`
	Reason      string                 `json:"reason,omitempty"`  // of Ready
	Message     string                 `json:"message,omitempty"` // of Ready
	Enforcement v1alpha1.Enforcement   `json:"enforcement,omitempty"`

	LeaseState           leaseState        `json:"leaseState"`
	LeaseDurationSeconds int32             `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          *metav1.MicroTime `json:"acquireTime,omitempty"`
	RenewTime            *metav1.MicroTime `json:"renewTime,omitempty"`

	// Of `status NAME` only.
	Objects  []objectReport `json:"objects,omitempty"`
	Events   []eventReport  `json:"events,omitempty"`
	Unlisted []unlisted     `json:"unlisted,omitempty"` // what could not be looked at
}

// objectReport is a guarded object.
type objectReport struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	Mark       int64     `json:"mark,omitempty"` // absent if it has none
	State      markState `json:"state"`
	Bypass     string    `json:"bypass,omitempty"` // reason of the last break-glass write

	groupKind string
}

// eventReport is something that happened under the FencedLease: a term that began
// or ended, and writes that were admitted although their tokens were not in order.
// Writes that were refused leave no Event behind.
type eventReport struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  string      `json:"object"`
	Message string      `json:"message"`
}

// reporter gathers reports.
type reporter struct {
	*factory

	client client.Client
	now    time.Time
}

// all reports on the FencedLeases of a namespace, or of all of them for "".
func (r *reporter) all(ctx context.Context, namespace string) ([]leaseReport, error) {
	list := &v1alpha1.FencedLeaseList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	leases := &coordinationv1.LeaseList{}
	unreadable := r.client.List(ctx, leases, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelFencedBy})
	byName := map[client.ObjectKey]*coordinationv1.Lease{}
	for i := range leases.Items {
		byName[client.ObjectKeyFromObject(&leases.Items[i])] = &leases.Items[i]
	}
	reports := make([]leaseReport, 0, len(list.Items))
	for i := range list.Items {
		fl := &list.Items[i]
		reports = append(reports, r.report(fl, byName[client.ObjectKey{Namespace: fl.Namespace, Name: fl.LeaseName()}], unreadable))
	}
	if unreadable != nil && len(reports) > 0 {
		_, _ = fmt.Fprintf(r.ErrOut, "Note: when the Leases were renewed is not known: %v\n", unreadable)
	}
	return reports, nil
}

// one reports on a FencedLease, and on what is under it.
func (r *reporter) one(ctx context.Context, namespace, name string) (*leaseReport, error) {
	fl, err := r.fencedLease(ctx, r.client, namespace, name)
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	unreadable := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fl.LeaseName()}, lease)
	if unreadable != nil {
		lease = nil
	}
	report := r.report(fl, lease, client.IgnoreNotFound(unreadable))
	if client.IgnoreNotFound(unreadable) != nil {
		report.Unlisted = append(report.Unlisted, unlisted{Resource: "leases.coordination.k8s.io/" + fl.LeaseName(), Reason: unreadable.Error()})
	}
	if err := r.objects(ctx, &report); err != nil {
		return nil, err
	}
	r.events(ctx, &report)
	return &report, nil
}

// report is what a FencedLease and its Lease say.
func (r *reporter) report(fl *v1alpha1.FencedLease, lease *coordinationv1.Lease, unreadable error) leaseReport {
	report := leaseReport{
		TypeMeta: reportType("LeaseStatus"),
		Name:     fl.Name, Namespace: fl.Namespace, Created: fl.CreationTimestamp, LeaseName: fl.LeaseName(),
		Token: fl.Status.Token, Holder: fl.Status.Holder.Identity, Writer: fl.Status.Holder.Writer,
		Ready: metav1.ConditionUnknown, Message: "the operator has not looked at it yet", Enforcement: fl.Spec.Enforcement,
		AcquireTime: fl.Status.AcquireTime, LeaseState: leaseMissing,
	}
	if c := meta.FindStatusCondition(fl.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		report.Ready, report.Reason, report.Message = c.Status, c.Reason, c.Message
	}
	switch {
	case unreadable != nil:
		report.LeaseState = leaseUnknown
	case lease != nil:
		report.readLease(fl, lease, r.now)
	}
	return report
}

// readLease takes from the Lease what is newer there than in the status.
func (report *leaseReport) readLease(fl *v1alpha1.FencedLease, lease *coordinationv1.Lease, now time.Time) {
	k := keys.OfLease(lease.Labels, lease.Annotations)
	state := fence.State{
		Exists: true, StatusToken: fence.Token(fl.Status.Token),
		Lease: fence.LeaseStateOf(k, fl.Name), LeaseKeys: k,
	}
	report.Token = int64(state.Current())
	report.AcquireTime, report.RenewTime = lease.Spec.AcquireTime, lease.Spec.RenewTime
	if lease.Spec.LeaseDurationSeconds != nil {
		report.LeaseDurationSeconds = *lease.Spec.LeaseDurationSeconds
	}
	report.Holder, report.Writer = holderOf(lease), ""
	switch {
	case report.Holder == "" || state.Lease != fence.LeaseOurs:
	case k.TokenFor == report.Holder:
		report.Writer = k.TokenHolder
	default:
		report.TokenPending = true
	}
	report.LeaseState = stateOfLease(&lease.Spec, now)
}

// stateOfLease is how a Lease stands. One that says nothing of its duration never
// expires.
func stateOfLease(spec *coordinationv1.LeaseSpec, now time.Time) leaseState {
	switch {
	case spec.HolderIdentity == nil || *spec.HolderIdentity == "":
		return leaseFree
	case spec.RenewTime == nil || spec.LeaseDurationSeconds == nil:
		return leaseHeld
	case now.Sub(spec.RenewTime.Time) > time.Duration(*spec.LeaseDurationSeconds)*time.Second:
		return leaseExpired
	default:
		return leaseHeld
	}
}

// listsAtOnce bounds how many kinds are listed at a time.
const listsAtOnce = 8

// objects finds what is under the FencedLease, of every kind that can be.
func (r *reporter) objects(ctx context.Context, report *leaseReport) error {
	config, err := r.ToRESTConfig()
	if err != nil {
		return err
	}
	list, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	kinds, unknown, err := r.guardableKinds()
	if err != nil {
		return err
	}
	report.Unlisted = append(report.Unlisted, unknown...)

	found, failed := make([][]objectReport, len(kinds)), make([]error, len(kinds))
	turns := make(chan struct{}, listsAtOnce)
	var all sync.WaitGroup
	for i, kind := range kinds {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			found[i], failed[i] = listGuarded(ctx, list, kind, report)
		})
	}
	all.Wait()
	for i, kind := range kinds {
		if failed[i] != nil {
			report.Unlisted = append(report.Unlisted, unlisted{Resource: kind.GroupResource().String(), Reason: failed[i].Error()})
		}
		report.Objects = append(report.Objects, found[i]...)
	}
	slices.SortFunc(report.Objects, func(a, b objectReport) int {
		return cmp.Or(strings.Compare(a.groupKind, b.groupKind), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// listGuarded lists the objects of a kind that are under the FencedLease of a
// report.
func listGuarded(ctx context.Context, client metadata.Interface, kind kind, report *leaseReport) ([]objectReport, error) {
	var found []objectReport
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(kind.GroupVersionResource).Namespace(report.Namespace).List(ctx, opts)
	})
	pages.PageSize = pageSize
	err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelGuardedBy + "=" + report.Name}, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		mark := markOf(keys.OfGuarded(object.GetLabels(), object.GetAnnotations()))
		found = append(found, objectReport{
			APIVersion: kind.GroupVersion().String(), Kind: kind.name, Name: object.GetName(),
			Mark: int64(mark), State: stateOf(mark, fence.Token(report.Token)),
			Bypass:    object.GetAnnotations()[v1alpha1.AnnotationBypass],
			groupKind: kind.groupKind(),
		})
		return nil
	})
	return found, err
}

const (
	// recentEvents is how many Events are shown.
	recentEvents = 10

	// mostEvents bounds how many are looked at: an Event about a guarded object
	// names its FencedLease only in its note.
	mostEvents = 2000
)

// events finds the newest Events about the FencedLease, and about writes under it
// whose tokens were not in order: of those that were refused, samples.
func (r *reporter) events(ctx context.Context, report *leaseReport) {
	for _, selector := range []fields.Set{
		{"involvedObject.kind": "FencedLease", "involvedObject.name": report.Name},
		{"reason": reasonRefused},
		{"reason": reasonBypassed},
		{"reason": reasonWarned},
	} {
		list := &corev1.EventList{}
		err := r.client.List(ctx, list, client.InNamespace(report.Namespace), client.Limit(mostEvents),
			client.MatchingFieldsSelector{Selector: selector.AsSelector()})
		if err != nil {
			report.Unlisted = append(report.Unlisted, unlisted{Resource: "events", Reason: err.Error()})
			return
		}
		for i := range list.Items {
			if event := &list.Items[i]; event.InvolvedObject.Kind == "FencedLease" || isUnder(event.Message, report.Name) {
				report.Events = append(report.Events, eventReport{
					Time: timeOf(event), Type: event.Type, Reason: event.Reason,
					Object:  nameOf(event.InvolvedObject.GroupVersionKind().GroupKind().String(), event.InvolvedObject.Name),
					Message: event.Message,
				})
			}
		}
	}
	slices.SortStableFunc(report.Events, func(a, b eventReport) int { return b.Time.Compare(a.Time.Time) })
	report.Events = report.Events[:min(len(report.Events), recentEvents)]
}

// The reasons of Events about guarded objects (webhooks/record.go).
const (
	reasonRefused  = "FenceRefused"
	reasonBypassed = "FenceBypassed"
	reasonWarned   = "FenceWarned"
)

// isUnder says whether the note of an Event names that FencedLease.
func isUnder(note, fencedLease string) bool {
	_, after, found := strings.Cut(note, "FencedLease ")
	name, _, _ := strings.Cut(after, " ")
	return found && strings.TrimSuffix(name, ":") == fencedLease
}

// timeOf is when an Event was last seen.
func timeOf(event *corev1.Event) metav1.Time {
	switch {
	case event.Series != nil:
		return metav1.Time{Time: event.Series.LastObservedTime.Time}
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp
	case !event.EventTime.IsZero():
		return metav1.Time{Time: event.EventTime.Time}
	default:
		return event.CreationTimestamp
	}
}
