package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is a Pod that is bound to the node, from its beginning until its object is gone.
type pod struct {
	agent *agent
	spec  *corev1.Pod // as it was first seen: this is what runs
	dir   string      // of its volumes and its containers

	// Each of these ends with the one before: the object is there, its containers may
	// run, its containers are wanted.
	exists, mayRun, wanted context.Context
	forget, kill, stop     context.CancelFunc

	inits, containers []*container
	volumes           map[string]*volume
	sandbox           *sandbox
	written           chan struct{} // closed when the writer of the status has ended
	changed           chan struct{} // has a value when the status is to be written

	mu              sync.Mutex // guards what follows, and the states of the containers
	latest          *corev1.Pod
	deadline        time.Time // of the containers, once they are to end
	started         metav1.Time
	initialized     bool
	over            bool // all containers have ended for good, or never begin
	failed          bool // whatever its containers say
	reason, message string
}

func newPod(ctx context.Context, a *agent, spec *corev1.Pod) *pod {
	p := &pod{
		agent: a, spec: spec, latest: spec, started: now(),
		dir:     filepath.Join(a.podsDir(), string(spec.UID)),
		volumes: map[string]*volume{},
		written: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	if spec.Status.StartTime != nil { // under an earlier agent
		p.started = *spec.Status.StartTime
	}
	p.exists, p.forget = context.WithCancel(ctx)
	p.mayRun, p.kill = context.WithCancel(p.exists)
	p.wanted, p.stop = context.WithCancel(p.mayRun)
	for i := range spec.Spec.InitContainers {
		p.inits = append(p.inits, newContainer(p, &spec.Spec.InitContainers[i], true))
	}
	for i := range spec.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, &spec.Spec.Containers[i], false))
	}
	return p
}

// observe takes notice of the object as it is now.
func (p *pod) observe(latest *corev1.Pod) {
	p.mu.Lock()
	p.latest = latest
	p.mu.Unlock()
	if latest.DeletionTimestamp != nil {
		p.end(seconds(latest.DeletionGracePeriodSeconds))
	}
}

// end tells the containers to end within a time, which can only become shorter.
func (p *pod) end(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline := time.Now().Add(grace)
	if p.deadline.IsZero() || deadline.Before(p.deadline) {
		p.deadline = deadline
		time.AfterFunc(grace, func() { p.kill() }) // which does nothing if they have ended by then
	}
	p.stop()
}

// change changes the state of the Pod, and has its status written.
func (p *pod) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// run is the Pod's life.
func (p *pod) run() {
	defer p.forget() // nothing of it goes on
	slog.Info("a Pod begins", "pod", fullName(p.spec))
	go p.writeStatus()
	if phase := p.spec.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		p.live()
		slog.Info("a Pod has ended", "pod", fullName(p.spec))
		p.change(func() { p.over = true })
	}
	<-p.wanted.Done()
	p.finish()
	<-p.exists.Done()
	<-p.written
}

// live runs the containers until they have ended for good.
func (p *pod) live() {
	p.change(func() {})
	if problems := unsupported(p.spec); len(problems) > 0 {
		p.change(func() {
			p.reason, p.message = reasonNotSupported, strings.Join(problems, "; ")
			for _, c := range slices.Concat(p.inits, p.containers) {
				c.wait(reasonNotSupported, p.message)
			}
		})
		<-p.wanted.Done()
		return
	}
	if limit := p.spec.Spec.ActiveDeadlineSeconds; limit != nil {
		timer := time.AfterFunc(time.Until(p.started.Add(seconds(limit))), p.exceed)
		defer timer.Stop()
	}
	defer p.clean()
	if !p.prepare("network", p.connect) || !p.prepare("volumes", p.mount) {
		return
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(p.mayRun)
	defer cancel()
	background.Go(func() { p.refresh(ctx) })

	for _, c := range p.inits {
		if !c.run() {
			return
		}
	}
	p.change(func() { p.initialized = true })
	var running sync.WaitGroup
	for _, c := range p.containers {
		running.Go(func() { c.run() })
	}
	running.Wait()
}

// prepare does something until it succeeds, and says whether it has.
func (p *pod) prepare(what string, f func(context.Context) error) bool {
	for {
		err := f(p.wanted)
		if p.wanted.Err() != nil {
			return false
		}
		if err == nil {
			p.change(func() { p.message = "" })
			return true
		}
		p.change(func() { p.message = what + ": " + err.Error() })
		sleep(p.wanted, retryPeriod)
	}
}

func (p *pod) connect(ctx context.Context) error {
	s, err := p.agent.network.connect(ctx, p.spec)
	if err == nil {
		p.change(func() { p.sandbox = s })
	}
	return err
}

// address is that of the Pod, or nothing yet.
func (p *pod) address() string {
	if p.sandbox == nil {
		return ""
	}
	return p.sandbox.address.String()
}

// exceed ends the Pod for its activeDeadlineSeconds.
func (p *pod) exceed() {
	p.change(func() {
		p.failed, p.reason, p.message = true, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	})
	p.end(seconds(p.spec.Spec.TerminationGracePeriodSeconds))
}

// clean removes what the Pod had on this node.
func (p *pod) clean() {
	var err error
	if p.sandbox != nil {
		err = p.sandbox.close(context.WithoutCancel(p.exists))
	}
	if err = errors.Join(err, os.RemoveAll(p.dir)); err != nil {
		slog.Error("a Pod left something behind", "pod", fullName(p.spec), "error", err)
	}
}

// finish removes the object of a Pod that has ended, if that is wanted.
func (p *pod) finish() {
	for p.exists.Err() == nil {
		p.mu.Lock()
		deleted := p.latest.DeletionTimestamp != nil
		p.mu.Unlock()
		if deleted { // and not just past its deadline
			if err := p.delete(); err == nil {
				return
			}
		}
		sleep(p.exists, retryPeriod/10)
	}
}

// delete removes the object, after its last status was written.
func (p *pod) delete() error {
	if err := p.write(p.exists); err != nil {
		return err
	}
	options := metav1.NewPreconditionDeleteOptions(string(p.spec.UID))
	options.GracePeriodSeconds = new(int64)
	return ignoreGone(p.agent.client.CoreV1().Pods(p.spec.Namespace).Delete(p.exists, p.spec.Name, *options))
}

// now is the time as it is stored: what is read again is equal to what was written.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }

func seconds(n *int64) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}

// sleep waits, at most until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
