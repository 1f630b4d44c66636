package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fencedlease/fencedlease/fence"
	"github.com/fencedlease/fencedlease/test/suite"
)

// wire is the connection of one candidate to the API server. It sees what the
// candidate writes to its Lease and what it is answered, and changes nothing.
type wire struct {
	next http.RoundTripper

	// before, if set, is called with each write before it is sent, and after with
	// each that was answered: the candidate waits meanwhile.
	before, after func(leaseWrite)

	mu     sync.Mutex
	read   *coordinationv1.Lease // the last that the candidate got
	writes []leaseWrite
}

// leaseWrite is one write of a Lease.
type leaseWrite struct {
	holder   string // "" for a release
	acquires bool   // it starts a term, seen from what the candidate had read
	code     int    // of the answer; 0 for none
	keys     fence.Keys
}

func (l leaseWrite) renews() bool   { return l.holder != "" && !l.acquires }
func (l leaseWrite) accepted() bool { return l.code == http.StatusOK }

// client is a client-go clientset for somebody, on a wire.
func (w *wire) client(a *suite.Actor) (kubernetes.Interface, error) {
	config := rest.CopyConfig(a.Config)
	config.ContentType = "application/json" // which the wire reads
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
	return kubernetes.NewForConfig(config)
}

// RoundTrip sends a request for a Lease.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	var write leaseWrite
	if request.Method == http.MethodPut {
		sent, err := sentLease(request)
		if err != nil {
			return nil, err
		}
		write = w.classify(sent)
		if w.before != nil {
			w.before(write)
		}
	}
	response, got, err := w.send(request)
	if request.Method == http.MethodPut {
		if response != nil {
			write.code = response.StatusCode
		}
		if got != nil {
			write.keys = suite.Keys(got)
		}
		w.mu.Lock()
		w.writes = append(w.writes, write)
		w.mu.Unlock()
		if w.after != nil {
			w.after(write)
		}
	}
	return response, err
}

// send sends a request and remembers the Lease of the answer.
func (w *wire) send(request *http.Request) (*http.Response, *coordinationv1.Lease, error) {
	response, err := w.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal(body, lease); err != nil {
		return nil, nil, fmt.Errorf("the answer is no Lease: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = lease
	return response, lease, nil
}

func (w *wire) classify(sent *coordinationv1.Lease) leaseWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	var write leaseWrite
	if sent.Spec.HolderIdentity != nil {
		write.holder = *sent.Spec.HolderIdentity
	}
	write.acquires = write.holder != "" && (w.read == nil ||
		!equality.Semantic.DeepEqual(w.read.Spec.HolderIdentity, sent.Spec.HolderIdentity) ||
		!equality.Semantic.DeepEqual(w.read.Spec.AcquireTime, sent.Spec.AcquireTime) ||
		!equality.Semantic.DeepEqual(w.read.Spec.LeaseTransitions, sent.Spec.LeaseTransitions))
	return write
}

// seen counts the writes that are so.
func (w *wire) seen(so func(leaseWrite) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, write := range w.writes {
		if so(write) {
			n++
		}
	}
	return n
}

func sentLease(request *http.Request) (*coordinationv1.Lease, error) {
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	return lease, json.NewDecoder(body).Decode(lease)
}
