package load

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/api/v1alpha1"
	"github.com/fencedlease/fencedlease/fence"
)

// manner is a way to write. It returns the object of the answer, and what the
// write claims: the claim of the attempt, unless it only inherits one.
type manner struct {
	name   string
	weight int
	write  func(*raceWriter, attempt) (*corev1.ConfigMap, fence.Token, error)
}

var manners = []manner{
	{"update", 5, (*raceWriter).update},
	{"update, nonce", 12, (*raceWriter).updateWithNonce},
	{"patch", 17, (*raceWriter).patch},
	{"patch, nonce", 33, (*raceWriter).patchWithNonce},
	{"user extra", 17, (*raceWriter).patchWithExtra},
	{"old revision", 5, (*raceWriter).updateOldRevision},
	{"inherit, update", 4, (*raceWriter).inheritByUpdate},
	{"inherit, patch", 5, (*raceWriter).inheritByPatch},
	{"future", 2, (*raceWriter).patchFuture},
}

// update reads, modifies and writes. Where the object has the token already, it
// is only inherited, unless the writer is the token-holder.
func (w *raceWriter) update(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	return w.modify(a.claim, data(a), tokenOnly(a.claim))
}

func (w *raceWriter) updateWithNonce(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	return w.modify(a.claim, data(a), tokenAndNonce(a))
}

func (w *raceWriter) patch(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	got, err := w.mergePatch(w.race.w.Ctx, w.Actor, map[string]any{"metadata": annotations(tokenOnly(a.claim)), "data": data(a)})
	return got, a.claim, err
}

func (w *raceWriter) patchWithNonce(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	got, err := w.mergePatch(w.race.w.Ctx, w.Actor, map[string]any{"metadata": annotations(tokenAndNonce(a)), "data": data(a)})
	return got, a.claim, err
}

// patchWithExtra does not mention the token in the object at all.
func (w *raceWriter) patchWithExtra(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	ctx := context.WithValue(w.race.w.Ctx, claimKey{}, a.claim)
	got, err := w.mergePatch(ctx, w.carrier, map[string]any{"data": data(a)})
	return got, a.claim, err
}

// updateOldRevision writes what it read for an earlier write.
func (w *raceWriter) updateOldRevision(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	if w.lastRead == nil {
		return w.updateWithNonce(a)
	}
	return w.put(w.lastRead.DeepCopy(), a.claim, data(a), tokenAndNonce(a))
}

// inheritByUpdate leaves the token as it was read, and takes it for its own.
func (w *raceWriter) inheritByUpdate(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	cm, err := w.read()
	if err != nil {
		return nil, fence.None, err
	}
	a.claim = stored(cm)
	return w.put(cm, a.claim, data(a), nil)
}

// inheritByPatch does not mention a token, and takes that of its last term for
// its own.
func (w *raceWriter) inheritByPatch(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	a.claim = w.own
	got, err := w.mergePatch(w.race.w.Ctx, w.Actor, map[string]any{"data": data(a)})
	return got, a.claim, err
}

// patchFuture claims a token that was not minted yet.
func (w *raceWriter) patchFuture(a attempt) (*corev1.ConfigMap, fence.Token, error) {
	a.claim = fence.Token(w.race.minted.Load()) + raceWrites
	return w.patch(a)
}

func (w *raceWriter) modify(claim fence.Token, data, annotate map[string]string) (*corev1.ConfigMap, fence.Token, error) {
	cm, err := w.read()
	if err != nil {
		return nil, fence.None, err
	}
	return w.put(cm, claim, data, annotate)
}

func (w *raceWriter) read() (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := w.Get(w.race.w.Ctx, w.race.w.Key("ledger"), cm)
	w.lastRead = cm.DeepCopy()
	return cm, err
}

func (w *raceWriter) put(cm *corev1.ConfigMap, claim fence.Token, data, annotate map[string]string) (*corev1.ConfigMap, fence.Token, error) {
	for key, value := range annotate {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, key, value)
	}
	cm.Data = data
	err := w.Update(w.race.w.Ctx, cm)
	return cm, claim, err
}

// mergePatch names no revision: the API server tries again after a conflict.
func (w *raceWriter) mergePatch(ctx context.Context, as client.Client, change map[string]any) (*corev1.ConfigMap, error) {
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.race.w.Namespace, Name: "ledger"}}
	err = as.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
	return cm, err
}

// data says whose write it is, and what it claims.
func data(a attempt) map[string]string {
	return map[string]string{"claim": a.claim.String(), "write": a.id}
}

func tokenOnly(claim fence.Token) map[string]string {
	return map[string]string{v1alpha1.AnnotationToken: claim.String()}
}

func tokenAndNonce(a attempt) map[string]string {
	return map[string]string{v1alpha1.AnnotationToken: a.claim.String(), v1alpha1.AnnotationWrite: a.claim.String() + "/" + a.id}
}

func annotations(values map[string]string) map[string]any {
	return map[string]any{"annotations": values}
}

// claimKey is that of a claim in a context.
type claimKey struct{}

// claimOfContext puts the claim of the context into the user extra, so that one
// client can carry any.
type claimOfContext struct{ next http.RoundTripper }

// RoundTrip replaces the claim that the client carries.
func (c claimOfContext) RoundTrip(request *http.Request) (*http.Response, error) {
	claim, ok := request.Context().Value(claimKey{}).(fence.Token)
	if !ok {
		return c.next.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	for key := range request.Header {
		if strings.EqualFold(key, "Impersonate-Extra-"+strings.ReplaceAll(v1alpha1.ExtraToken, "/", "%2F")) {
			request.Header[key] = []string{claim.String()}
		}
	}
	return c.next.RoundTrip(request)
}
