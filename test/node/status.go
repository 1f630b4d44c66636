package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// writeStatus writes the status when it has changed, until the object is gone. What
// cannot be written now is written later.
func (p *pod) writeStatus() {
	defer close(p.written)
	for {
		select {
		case <-p.exists.Done():
			return
		case <-p.changed:
		}
		if err := p.write(p.exists); err != nil && p.exists.Err() == nil {
			slog.Warn("the status of a Pod was not written", "pod", fullName(p.spec), "error", err)
			sleep(p.exists, retryPeriod)
			p.change(func() {})
		}
	}
}

// write writes the status as it is now, to this object and no other of its name.
func (p *pod) write(ctx context.Context) error {
	pods := p.agent.client.CoreV1().Pods(p.spec.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored, err := pods.Get(ctx, p.spec.Name, metav1.GetOptions{})
		if err != nil || stored.UID != p.spec.UID {
			return err
		}
		before := stored.Status.DeepCopy()
		p.fill(stored)
		if equality.Semantic.DeepEqual(*before, stored.Status) {
			return nil
		}
		_, err = pods.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// fill puts the state of the Pod into its status. Conditions of others stay.
func (p *pod) fill(stored *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &stored.Status
	if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
		return // for good
	}
	s.ObservedGeneration = stored.Generation
	s.StartTime = &p.started
	s.HostIP = p.agent.address.Addr().String()
	s.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
	if s.PodIP = p.address(); s.PodIP != "" {
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	s.InitContainerStatuses = statuses(p.inits)
	s.ContainerStatuses = statuses(p.containers)
	s.Reason, s.Message = p.reason, p.message
	s.Phase = p.phase()
	p.setConditions(stored)
}

func statuses(containers []*container) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range containers {
		list = append(list, c.status())
	}
	return list
}

func (p *pod) phase() corev1.PodPhase {
	if p.over {
		succeeded := func(c *container) bool { return c.succeeded() }
		if p.failed || !p.initialized || !all(p.containers, succeeded) {
			return corev1.PodFailed
		}
		return corev1.PodSucceeded
	}
	if p.initialized && all(p.containers, func(c *container) bool { return c.begun }) {
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func all(containers []*container, f func(*container) bool) bool {
	return !slices.ContainsFunc(containers, func(c *container) bool { return !f(c) })
}

func (p *pod) setConditions(stored *corev1.Pod) {
	var unready []string
	for _, c := range p.containers {
		if !c.ready {
			unready = append(unready, c.spec.Name)
		}
	}
	reason, message := "", ""
	switch {
	case stored.Status.Phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case stored.Status.Phase == corev1.PodFailed:
		reason = "PodFailed"
	case len(unready) > 0:
		reason, message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	}
	containersReady := reason == ""
	ready, gates := containersReady, []string{}
	for _, gate := range stored.Spec.ReadinessGates {
		if !isTrue(stored, gate.ConditionType) {
			gates = append(gates, string(gate.ConditionType))
		}
	}
	set := func(kind corev1.PodConditionType, is bool, reason, message string) {
		setCondition(stored, kind, is, reason, message)
	}
	set(corev1.PodScheduled, true, "", "")
	set(corev1.PodReadyToStartContainers, p.sandbox != nil && !p.over, "", "")
	if p.initialized {
		set(corev1.PodInitialized, true, "", "")
	} else {
		set(corev1.PodInitialized, false, "ContainersNotInitialized", "")
	}
	set(corev1.ContainersReady, containersReady, reason, message)
	if ready && len(gates) > 0 {
		ready, reason, message = false, "ReadinessGatesNotReady", "conditions that are not true: "+strings.Join(gates, " ")
	}
	set(corev1.PodReady, ready, reason, message)
}

func isTrue(stored *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(stored.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func setCondition(stored *corev1.Pod, kind corev1.PodConditionType, is bool, reason, message string) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	conditions := &stored.Status.Conditions
	i := slices.IndexFunc(*conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		i = len(*conditions)
		*conditions = append(*conditions, corev1.PodCondition{Type: kind})
	}
	c := &(*conditions)[i]
	if c.Status != status {
		c.LastTransitionTime = now()
	}
	c.Status, c.Reason, c.Message, c.ObservedGeneration = status, reason, message, stored.Generation
}
