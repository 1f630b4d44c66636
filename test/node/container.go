package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A container that ends waits for its restart this long, and twice as long each time.
// One that has run for a while begins anew.
const (
	firstBackoff   = time.Second
	longestBackoff = 10 * time.Second
	stable         = 30 * time.Second
)

// container is a container of a Pod, over all its restarts.
type container struct {
	pod  *pod
	spec *corev1.Container
	init bool

	// Guarded by the Pod's mutex.
	state, last corev1.ContainerState
	begun       bool  // it has run, maybe under an earlier agent
	started     bool  // it runs, and its startup probe has succeeded
	ready       bool  // and its readiness probe
	restarts    int32 // how often it was started again
	id          string
	logs        []*logSpan // of its last two instances
}

func newContainer(p *pod, spec *corev1.Container, init bool) *container {
	c := &container{pod: p, spec: spec, init: init}
	c.wait("PodInitializing", "")
	known := p.spec.Status.ContainerStatuses
	if init {
		known = p.spec.Status.InitContainerStatuses
	}
	for i := range known {
		if known[i].Name == spec.Name {
			c.recall(&known[i])
		}
	}
	return c
}

// recall takes over what an earlier agent wrote. The container went with that agent.
func (c *container) recall(s *corev1.ContainerStatus) {
	c.last, c.restarts = s.LastTerminationState, s.RestartCount
	c.begun = s.State.Waiting == nil || s.LastTerminationState.Terminated != nil
	switch {
	case s.State.Terminated != nil:
		c.state = s.State
	case s.State.Running != nil:
		c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "the node went away",
			StartedAt: s.State.Running.StartedAt, FinishedAt: now(),
		}}
	}
}

// run runs the container until it has ended for good, and says whether it succeeded.
// Only then, or when the Pod is to end, does it return.
func (c *container) run() bool {
	backoff := firstBackoff
	for c.pod.wanted.Err() == nil {
		if ended := c.state.Terminated; ended != nil { // nobody else changes it meanwhile
			if !c.again(ended.ExitCode) {
				return ended.ExitCode == 0
			}
			if ended.FinishedAt.Sub(ended.StartedAt.Time) > stable {
				backoff = firstBackoff
			}
			c.pod.change(func() {
				c.last = c.state
				c.wait("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", backoff))
			})
			sleep(c.pod.wanted, backoff)
			backoff = min(2*backoff, longestBackoff)
			if c.pod.wanted.Err() != nil {
				c.pod.change(func() { c.state = c.last })
				break
			}
		}
		if err := c.instance(); err != nil {
			c.pod.change(func() { c.wait(waitingReason(err), err.Error()) })
			sleep(c.pod.wanted, retryPeriod)
		}
	}
	return false
}

// begin counts an instance. The Pod's mutex is held.
func (c *container) begin() {
	if c.begun {
		c.restarts++
	}
	c.begun = true
}

// again says whether the container is to be started again.
func (c *container) again(exitCode int32) bool {
	switch c.pod.spec.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return exitCode != 0 || !c.init
	}
}

// instance runs the container once. It is an error if it cannot begin yet.
func (c *container) instance() error {
	setup, err := c.setup(c.pod.wanted)
	if err != nil {
		return err
	}
	log, err := c.openLog()
	if err != nil {
		return err
	}
	defer c.closeLog(log)
	beginning := now()
	running, err := startProcess(c.pod.agent.spawner, c.pod.sandbox.netns, setup, log)
	if err != nil {
		c.pod.change(func() {
			c.begin()
			c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: beginning, FinishedAt: now(),
			}}
		})
		return nil
	}
	c.pod.change(func() {
		c.begin()
		c.id = fmt.Sprintf("pid://%d", running.pid())
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: beginning}}
		c.started = c.spec.StartupProbe == nil
		c.ready = c.started && c.spec.ReadinessProbe == nil && !c.init
	})
	slog.Info("a container runs", "pod", fullName(c.pod.spec), "container", c.spec.Name, "pid", running.pid())

	// The probes end with the instance.
	ctx, cancel := context.WithCancel(c.pod.mayRun)
	var probes sync.WaitGroup
	unhealthy := make(chan struct{})
	probes.Go(func() { c.probe(ctx, unhealthy) })
	c.await(running, unhealthy)
	cancel()
	c.ended(beginning, running) // at once: no probe need return for it
	probes.Wait()
	return nil
}

// await waits for the end of a process, or brings it about.
func (c *container) await(running *process, unhealthy <-chan struct{}) {
	select {
	case <-running.done:
		return
	case <-c.pod.wanted.Done():
		c.terminate(c.pod.mayRun, running)
	case <-unhealthy:
		grace := seconds(c.pod.spec.Spec.TerminationGracePeriodSeconds)
		if probe := c.spec.LivenessProbe; probe != nil && probe.TerminationGracePeriodSeconds != nil {
			grace = seconds(probe.TerminationGracePeriodSeconds)
		}
		ctx, cancel := context.WithTimeout(c.pod.mayRun, grace)
		defer cancel()
		c.terminate(ctx, running)
	}
	running.signal(syscall.SIGKILL)
	<-running.done
}

// terminate asks a process to end, and gives it until the context ends.
func (c *container) terminate(ctx context.Context, running *process) {
	if hook := c.spec.Lifecycle; hook != nil && hook.PreStop != nil && hook.PreStop.Sleep != nil {
		select {
		case <-running.done:
		case <-ctx.Done():
		case <-time.After(time.Duration(hook.PreStop.Sleep.Seconds) * time.Second):
		}
	}
	if ctx.Err() == nil {
		running.signal(syscall.SIGTERM)
	}
	select {
	case <-running.done:
	case <-ctx.Done():
	}
}

// ended tells how an instance ended.
func (c *container) ended(beginning metav1.Time, running *process) {
	code, signal := running.exit()
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	slog.Info("a container ended", "pod", fullName(c.pod.spec), "container", c.spec.Name, "exitCode", code)
	message := c.terminationMessage(code)
	c.pod.change(func() {
		c.started, c.ready = false, c.init && code == 0
		c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Signal: signal, Reason: reason, Message: message,
			StartedAt: beginning, FinishedAt: now(), ContainerID: c.id,
		}}
	})
}

// wait says why the container does not run. The Pod's mutex is held, or nobody knows
// the container yet.
func (c *container) wait(reason, message string) {
	c.started, c.ready = false, false
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func (c *container) succeeded() bool {
	return c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}

// status is that of the container. The Pod's mutex is held.
func (c *container) status() corev1.ContainerStatus {
	started := c.started
	return corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, ContainerID: c.id,
		State: c.state, LastTerminationState: c.last, RestartCount: c.restarts,
		Ready: c.ready, Started: &started,
	}
}

// waiting is an error with the reason that a waiting container has for it.
type waiting struct {
	reason string
	error
}

func waitingReason(err error) string {
	if w := (waiting{}); errors.As(err, &w) {
		return w.reason
	}
	return "CreateContainerError"
}

func waitFor(reason, format string, args ...any) error {
	return waiting{reason, fmt.Errorf(format, args...)}
}
