package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const reasonNotSupported = "NotSupported"

// problems are what a Pod asks for and this node does not do.
type problems []string

func (p *problems) check(present bool, what string) {
	if present {
		*p = append(*p, "this test node does not support "+what)
	}
}

// unsupported lists what would make the Pod behave otherwise than on a real node.
func unsupported(pod *corev1.Pod) problems {
	var p problems
	s := &pod.Spec
	p.check(s.HostNetwork || s.HostPID || s.HostIPC, "hostNetwork, hostPID and hostIPC")
	p.check(s.HostUsers != nil && !*s.HostUsers, "hostUsers: false")
	p.check(isSet(s.ShareProcessNamespace), "shareProcessNamespace")
	p.check(isSet(s.SetHostnameAsFQDN), "setHostnameAsFQDN")
	p.check(s.RuntimeClassName != nil, "runtimeClassName")
	p.check(len(s.EphemeralContainers) > 0, "ephemeral containers")
	p.check(len(s.HostAliases) > 0, "hostAliases")
	p.check(len(s.ResourceClaims) > 0, "resource claims")
	if c := s.SecurityContext; c != nil {
		p.check(len(c.Sysctls) > 0, "sysctls")
		p.check(c.WindowsOptions != nil, "windowsOptions")
	}
	if a := s.Affinity; a != nil {
		p.check(a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0, "required podAffinity")
		p.check(a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0, "required podAntiAffinity")
	}
	for i := range s.Volumes {
		p.checkVolume(&s.Volumes[i])
	}
	for i := range s.InitContainers {
		p.check(s.InitContainers[i].RestartPolicy != nil, "sidecars: init containers with a restartPolicy")
		p.checkContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		p.check(s.Containers[i].RestartPolicy != nil, "a restartPolicy of a container")
		p.checkContainer(&s.Containers[i])
	}
	return p
}

func (p *problems) checkVolume(v *corev1.Volume) {
	known := v.Secret != nil || v.ConfigMap != nil || v.EmptyDir != nil || v.DownwardAPI != nil || v.Projected != nil
	p.check(!known, fmt.Sprintf("the kind of volume %q", v.Name))
	if v.Projected == nil {
		return
	}
	for _, source := range v.Projected.Sources {
		known := source.Secret != nil || source.ConfigMap != nil || source.DownwardAPI != nil || source.ServiceAccountToken != nil
		p.check(!known, fmt.Sprintf("a kind of source in volume %q", v.Name))
	}
}

func (p *problems) checkContainer(c *corev1.Container) {
	of := func(what string) string { return fmt.Sprintf("%s, in container %q", what, c.Name) }
	for _, port := range c.Ports {
		p.check(port.HostPort != 0 || port.HostIP != "", of("hostPort"))
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		p.check(probe != nil && (probe.HTTPGet == nil || probe.HTTPGet.Scheme == corev1.URISchemeHTTPS), of("probes other than of plain HTTP"))
	}
	if l := c.Lifecycle; l != nil {
		p.check(l.PostStart != nil, of("postStart"))
		p.check(l.PreStop != nil && l.PreStop.Sleep == nil, of("preStop other than sleep"))
		p.check(l.StopSignal != nil, of("stopSignal"))
	}
	p.check(c.Stdin || c.TTY, of("stdin and tty"))
	p.check(len(c.VolumeDevices) > 0, of("volumeDevices"))
	for _, m := range c.VolumeMounts {
		p.check(m.SubPathExpr != "", of("subPathExpr"))
		p.check(m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone, of("mountPropagation"))
		p.check(m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled, of("recursiveReadOnly"))
	}
	for _, e := range c.Env {
		p.check(e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil, of("fileKeyRef"))
	}
	if s := c.SecurityContext; s != nil {
		p.check(isSet(s.Privileged), of("privileged"))
		p.check(s.ProcMount != nil && *s.ProcMount != corev1.DefaultProcMount, of("procMount"))
		if s.Capabilities != nil {
			for _, name := range slices.Concat(s.Capabilities.Add, s.Capabilities.Drop) {
				_, known := capabilities[name]
				dropsAll := name == "ALL" && !slices.Contains(s.Capabilities.Add, name)
				p.check(!known && !dropsAll, of("capability "+string(name)))
			}
		}
	}
}
