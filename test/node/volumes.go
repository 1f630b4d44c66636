package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume is a volume of a Pod.
type volume struct {
	spec    *corev1.Volume
	dir     string
	fsGroup *int64
	content payload
	tokens  map[string]token // by their paths
}

// token is a token of the Pod's service account, and when it is due for a new one.
type token struct {
	value string
	renew time.Time
}

// written says whether the node writes the files. Then nobody else may.
func (v *volume) written() bool { return v.spec.EmptyDir == nil }

// makeEmpty makes a directory that every container may write to.
func (v *volume) makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if v.fsGroup != nil {
		return errors.Join(os.Chown(dir, -1, int(*v.fsGroup)), os.Chmod(dir, os.ModeSetgid|sharedDir))
	}
	return os.Chmod(dir, sharedDir)
}

// mount makes the volumes of the Pod, for the first time.
func (p *pod) mount(ctx context.Context) error {
	for i := range p.spec.Spec.Volumes {
		spec := &p.spec.Spec.Volumes[i]
		v := p.volumes[spec.Name]
		if v == nil {
			v = &volume{spec: spec, dir: filepath.Join(p.dir, "volumes", spec.Name), tokens: map[string]token{}}
			if p.spec.Spec.SecurityContext != nil {
				v.fsGroup = p.spec.Spec.SecurityContext.FSGroup
			}
			p.volumes[spec.Name] = v
		}
		var err error
		if v.written() {
			err = p.update(ctx, v)
		} else {
			err = v.makeEmpty(v.dir)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
	}
	return nil
}

// refresh keeps the volumes up to date until the context ends.
func (p *pod) refresh(ctx context.Context) {
	ticker := time.NewTicker(p.agent.syncPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, v := range p.volumes {
			if !v.written() {
				continue
			}
			// What is missing now stays as it is.
			if err := p.update(ctx, v); err != nil && ctx.Err() == nil {
				slog.Warn("a volume is not up to date", "pod", fullName(p.spec), "volume", v.spec.Name, "error", err)
			}
		}
	}
}

// update writes what belongs into a volume now.
func (p *pod) update(ctx context.Context, v *volume) error {
	content := payload{}
	var err error
	switch spec := v.spec; {
	case spec.Secret != nil:
		err = p.addSecret(ctx, content, spec.Secret.SecretName, spec.Secret.Items, spec.Secret.Optional, spec.Secret.DefaultMode)
	case spec.ConfigMap != nil:
		err = p.addConfigMap(ctx, content, spec.ConfigMap.Name, spec.ConfigMap.Items, spec.ConfigMap.Optional, spec.ConfigMap.DefaultMode)
	case spec.DownwardAPI != nil:
		err = p.addFields(content, spec.DownwardAPI.Items, spec.DownwardAPI.DefaultMode)
	case spec.Projected != nil:
		err = p.addProjected(ctx, content, v)
	}
	if err != nil {
		return err
	}
	if v.content != nil && content.equal(v.content) {
		return nil
	}
	if err := content.write(v.dir, v.fsGroup); err != nil {
		return err
	}
	v.content = content
	return nil
}

func (p *pod) addProjected(ctx context.Context, content payload, v *volume) error {
	mode := v.spec.Projected.DefaultMode
	for _, source := range v.spec.Projected.Sources {
		var err error
		switch {
		case source.Secret != nil:
			err = p.addSecret(ctx, content, source.Secret.Name, source.Secret.Items, source.Secret.Optional, mode)
		case source.ConfigMap != nil:
			err = p.addConfigMap(ctx, content, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional, mode)
		case source.DownwardAPI != nil:
			err = p.addFields(content, source.DownwardAPI.Items, mode)
		case source.ServiceAccountToken != nil:
			err = p.addToken(ctx, content, v, source.ServiceAccountToken)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) addSecret(ctx context.Context, content payload, name string, items []corev1.KeyToPath, optional *bool, mode *int32) error {
	data, err := p.secret(ctx, name, optional)
	if err != nil {
		return err
	}
	return content.add("secret "+name, data, items, isSet(optional), mode)
}

func (p *pod) addConfigMap(ctx context.Context, content payload, name string, items []corev1.KeyToPath, optional *bool, mode *int32) error {
	data, err := p.configMap(ctx, name, optional)
	if err != nil {
		return err
	}
	return content.add("configmap "+name, data, items, isSet(optional), mode)
}

func (p *pod) addFields(content payload, items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	for _, item := range items {
		var value string
		var err error
		if item.FieldRef != nil {
			value, err = p.field(item.FieldRef.FieldPath)
		} else {
			value, err = p.containerResource(item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		content[item.Path] = file{[]byte(value), *first(item.Mode, mode)}
	}
	return nil
}

func (p *pod) containerResource(ref *corev1.ResourceFieldSelector) (string, error) {
	for _, c := range p.containers {
		if c.spec.Name == ref.ContainerName {
			return c.resource(ref)
		}
	}
	return "", fmt.Errorf("there is no container %q", ref.ContainerName)
}

// addToken adds a token that is bound to the Pod. It is renewed when most of its time
// has passed.
func (p *pod) addToken(ctx context.Context, content payload, v *volume, projection *corev1.ServiceAccountTokenProjection) error {
	have, ok := v.tokens[projection.Path]
	if !ok || time.Now().After(have.renew) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: projection.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.spec.Name, UID: p.spec.UID},
		}}
		if projection.Audience != "" {
			request.Spec.Audiences = []string{projection.Audience}
		}
		begin := time.Now()
		got, err := p.agent.client.CoreV1().ServiceAccounts(p.spec.Namespace).
			CreateToken(ctx, p.spec.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil && !ok {
			return fmt.Errorf("token: %w", err)
		}
		if err != nil { // the old one is good for a while
			slog.Warn("a token was not renewed", "pod", fullName(p.spec), "error", err)
		} else {
			life := got.Status.ExpirationTimestamp.Sub(begin)
			have = token{got.Status.Token, begin.Add(life * 4 / 5)}
			v.tokens[projection.Path] = have
		}
	}
	content[projection.Path] = file{[]byte(have.value), *first(v.spec.Projected.DefaultMode, &tokenMode)}
	return nil
}

var tokenMode int32 = 0o644
