package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/clock"
)

// leaseSeconds and its quarter are a kubelet's.
const leaseSeconds = 40

// register makes the Node, or takes over the one that an earlier agent left.
func (a *agent) register(ctx context.Context, logPort int32) error {
	nodes := a.client.CoreV1().Nodes()
	labels := map[string]string{
		corev1.LabelHostname:     a.name,
		corev1.LabelOSStable:     "linux",
		corev1.LabelTopologyZone: "zone-1",
	}
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, a.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		room := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("16"),
			corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		}
		since := now()
		node.Status = corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			// By which the API server asks for logs.
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: a.address.Addr().String()}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: logPort}},
			NodeInfo:        corev1.NodeSystemInfo{OperatingSystem: "linux", KubeletVersion: "v0.0.0-test"},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "AgentReady",
				Message: "the agent runs", LastHeartbeatTime: since, LastTransitionTime: since,
			}},
		}
		a.node, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// findAPIServer waits for the Service that the API server makes for itself.
func (a *agent) findAPIServer(ctx context.Context) (map[string]string, error) {
	var service *corev1.Service
	err := wait.PollUntilContextTimeout(ctx, retryPeriod/10, requestTimeout, true, func(ctx context.Context) (found bool, err error) {
		service, err = a.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
		return err == nil, ignoreGone(err)
	})
	if err != nil {
		return nil, fmt.Errorf("look for the Service kubernetes: %w", err)
	}
	variables := map[string]string{"KUBERNETES_SERVICE_HOST": service.Spec.ClusterIP}
	for _, port := range service.Spec.Ports {
		variables["KUBERNETES_SERVICE_PORT"] = strconv.Itoa(int(port.Port))
		variables["KUBERNETES_SERVICE_PORT_"+strings.ToUpper(port.Name)] = strconv.Itoa(int(port.Port))
	}
	return variables, nil
}

// heartbeat renews the Lease of the node until the context ends.
func (a *agent) heartbeat(ctx context.Context) {
	own := func(l *coordinationv1.Lease) error {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.name, UID: a.node.UID}}
		return nil
	}
	lease.NewController(clock.RealClock{}, a.client, a.name, leaseSeconds, nil,
		leaseSeconds*time.Second/4, a.name, corev1.NamespaceNodeLease, own).Run(ctx)
}

// schedule binds a Pod to this node: it has no other. One that wants another waits,
// as it does for a scheduler.
func (a *agent) schedule(ctx context.Context, p *corev1.Pod) error {
	if p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 || p.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return nil
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(a.node); err != nil {
		return err
	} else if !fits {
		return a.leave(ctx, p)
	}
	return ignoreGone(a.client.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: a.name},
	}, metav1.CreateOptions{}))
}

// leave says in the status of a Pod that it has to wait for another node.
func (a *agent) leave(ctx context.Context, p *corev1.Pod) error {
	left := p.DeepCopy()
	setCondition(left, corev1.PodScheduled, false, corev1.PodReasonUnschedulable,
		fmt.Sprintf("its nodeSelector or node affinity does not match the labels of the only node: %v", a.node.Labels))
	if equality.Semantic.DeepEqual(left, p) {
		return nil
	}
	_, err := a.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, left, metav1.UpdateOptions{})
	return ignoreGone(err)
}

// ignoreGone makes no error of an object that is gone, or not what it was.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
