package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe runs the probes of an instance until the context ends. It closes unhealthy if
// the instance is to be restarted.
func (c *container) probe(ctx context.Context, unhealthy chan<- struct{}) {
	if c.spec.StartupProbe != nil {
		startup := make(chan bool, 1)
		c.repeat(ctx, c.spec.StartupProbe, func(ok bool) bool { startup <- ok; return false })
		if ctx.Err() != nil {
			return
		}
		if !<-startup {
			close(unhealthy)
			return
		}
		c.report(func() { c.started, c.ready = true, c.spec.ReadinessProbe == nil })
	}
	var both sync.WaitGroup
	if c.spec.ReadinessProbe != nil {
		both.Go(func() {
			c.repeat(ctx, c.spec.ReadinessProbe, func(ok bool) bool {
				c.report(func() { c.ready = ok })
				return true
			})
		})
	}
	if c.spec.LivenessProbe != nil {
		both.Go(func() {
			// Nobody minds it once the Pod is to end.
			c.repeat(ctx, c.spec.LivenessProbe, func(ok bool) bool {
				if !ok {
					close(unhealthy)
				}
				return ok
			})
		})
	}
	both.Wait()
}

// report changes the state of the container, unless it has ended meanwhile.
func (c *container) report(f func()) {
	c.pod.change(func() {
		if c.state.Running != nil {
			f()
		}
	})
}

// repeat probes until the context ends, or report does not want more. It reports each
// result that comes often enough in a row.
func (c *container) repeat(ctx context.Context, probe *corev1.Probe, report func(ok bool) (more bool)) {
	sleep(ctx, time.Duration(probe.InitialDelaySeconds)*time.Second)
	var row int32
	var last bool
	ticker := time.NewTicker(time.Duration(max(1, probe.PeriodSeconds)) * time.Second)
	defer ticker.Stop()
	for ctx.Err() == nil {
		ok := c.get(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		if ok != last {
			row = 0
		}
		row, last = row+1, ok
		enough := max(1, probe.FailureThreshold)
		if ok {
			enough = max(1, probe.SuccessThreshold)
		}
		if row == enough && !report(ok) {
			return
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// get asks once.
func (c *container) get(ctx context.Context, probe *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
	defer cancel()
	action := probe.HTTPGet
	host := action.Host
	if host == "" {
		host = c.pod.address()
	}
	url := "http://" + net.JoinHostPort(host, c.port(action.Port)) + action.Path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	request.Header.Set("User-Agent", "kube-probe/node")
	for _, header := range action.HTTPHeaders {
		if header.Name == "Host" {
			request.Host = header.Value
		}
		request.Header.Add(header.Name, header.Value)
	}
	// A new connection each time: what is probed is whether it answers a stranger.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// port is a port by its number or its name.
func (c *container) port(port intstr.IntOrString) string {
	for _, p := range c.spec.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			return strconv.Itoa(int(p.ContainerPort))
		}
	}
	return port.String()
}
