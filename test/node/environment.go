package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment has the variables that Kubernetes sets, as opposed to the image.
func (c *container) environment(ctx context.Context) (map[string]string, error) {
	values := maps.Clone(c.pod.agent.apiServer)
	values["HOSTNAME"] = cmp.Or(c.pod.spec.Spec.Hostname, c.pod.spec.Name)
	for _, from := range c.spec.EnvFrom {
		all, err := c.pod.envFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		for name, value := range all {
			values[from.Prefix+name] = value
		}
	}
	for _, variable := range c.spec.Env {
		value, found := expand(variable.Value, values), true
		if variable.ValueFrom != nil {
			var err error
			if value, found, err = c.valueFrom(ctx, variable.ValueFrom); err != nil {
				return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
			}
		}
		if found {
			values[variable.Name] = value
		}
	}
	return values, nil
}

// environ puts the variables over those of the image.
func environ(ofImage []string, values map[string]string) []string {
	all := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, variable := range ofImage {
		name, value, _ := strings.Cut(variable, "=")
		all[name] = value
	}
	maps.Copy(all, values)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

func (p *pod) envFrom(ctx context.Context, from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.SecretRef != nil:
		data, err := p.secret(ctx, from.SecretRef.Name, from.SecretRef.Optional)
		return texts(data), err
	case from.ConfigMapRef != nil:
		data, err := p.configMap(ctx, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		return texts(data), err
	}
	return nil, nil
}

// valueFrom looks up a value that may be left out.
func (c *container) valueFrom(ctx context.Context, from *corev1.EnvVarSource) (value string, found bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = c.pod.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = c.resource(from.ResourceFieldRef)
		return value, true, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := c.pod.secret(ctx, ref.Name, ref.Optional)
		return key(data, err, ref.Key, ref.Optional)
	default:
		ref := from.ConfigMapKeyRef
		data, err := c.pod.configMap(ctx, ref.Name, ref.Optional)
		return key(data, err, ref.Key, ref.Optional)
	}
}

func key(data map[string][]byte, err error, name string, optional *bool) (string, bool, error) {
	value, ok := data[name]
	if err == nil && !ok && !isSet(optional) {
		err = fmt.Errorf("key %q is missing", name)
	}
	return string(value), ok, err
}

// secret and configMap read an object as it is now. One that is optional may be missing.
func (p *pod) secret(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	found, err := p.agent.client.CoreV1().Secrets(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	return found.Data, nil
}

func (p *pod) configMap(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	found, err := p.agent.client.CoreV1().ConfigMaps(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	data := maps.Clone(found.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for name, text := range found.Data {
		data[name] = []byte(text)
	}
	return data, nil
}

func unlessOptional(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && isSet(optional) {
		return nil
	}
	return err
}

func isSet(b *bool) bool { return b != nil && *b }

func texts(data map[string][]byte) map[string]string {
	all := map[string]string{}
	for name, value := range data {
		all[name] = string(value)
	}
	return all
}

// keyed is a field path with a key, like metadata.labels['name'].
var keyed = regexp.MustCompile(`^metadata\.(labels|annotations)\['(.+)'\]$`)

// field is a field of the Pod, for its containers.
func (p *pod) field(path string) (string, error) {
	p.mu.Lock()
	latest := p.latest
	p.mu.Unlock()
	if m := keyed.FindStringSubmatch(path); m != nil {
		if m[1] == "labels" {
			return latest.Labels[m[2]], nil
		}
		return latest.Annotations[m[2]], nil
	}
	switch path {
	case "metadata.name":
		return latest.Name, nil
	case "metadata.namespace":
		return latest.Namespace, nil
	case "metadata.uid":
		return string(latest.UID), nil
	case "metadata.labels":
		return lines(latest.Labels), nil
	case "metadata.annotations":
		return lines(latest.Annotations), nil
	case "spec.nodeName":
		return latest.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return latest.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return p.agent.address.Addr().String(), nil
	case "status.podIP", "status.podIPs":
		return p.address(), nil
	}
	return "", fmt.Errorf("the node does not know the field %s", path)
}

func lines(values map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s=%q\n", name, values[name])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// resource is a request or limit of the container, or what the node has where there is
// none.
func (c *container) resource(ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.spec.Resources.Requests
	if kind == "limits" {
		list = c.spec.Resources.Limits
	}
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok && kind == "limits" {
		quantity, ok = c.pod.agent.node.Status.Allocatable[corev1.ResourceName(name)]
	}
	if !ok && kind != "requests" {
		return "", fmt.Errorf("the node does not know the resource %s", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	n, d := quantity.Value(), divisor.Value()
	if name == string(corev1.ResourceCPU) {
		n, d = quantity.MilliValue(), divisor.MilliValue()
	}
	return strconv.FormatInt((n+d-1)/d, 10), nil
}

// reference is a variable in a text, or the way to write a dollar.
var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// expand replaces $(NAME) where there is such a variable, as Kubernetes does.
func expand(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := values[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

func expandAll(list []string, values map[string]string) []string {
	var all []string
	for _, text := range list {
		all = append(all, expand(text, values))
	}
	return all
}
