package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// capabilities are those of a container that neither adds nor drops any, as with
// containerd; but they make no devices: nothing keeps those of the machine from them.
var capabilities = map[corev1.Capability]uintptr{
	"AUDIT_WRITE":      unix.CAP_AUDIT_WRITE,
	"CHOWN":            unix.CAP_CHOWN,
	"DAC_OVERRIDE":     unix.CAP_DAC_OVERRIDE,
	"FOWNER":           unix.CAP_FOWNER,
	"FSETID":           unix.CAP_FSETID,
	"KILL":             unix.CAP_KILL,
	"NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE,
	"NET_RAW":          unix.CAP_NET_RAW,
	"SETFCAP":          unix.CAP_SETFCAP,
	"SETGID":           unix.CAP_SETGID,
	"SETPCAP":          unix.CAP_SETPCAP,
	"SETUID":           unix.CAP_SETUID,
	"SYS_CHROOT":       unix.CAP_SYS_CHROOT,
}

// setup is what the next instance of the container is made from.
func (c *container) setup(ctx context.Context) (*containerSetup, error) {
	img, err := c.pod.agent.image(c.spec.Image)
	if err != nil {
		return nil, err
	}
	s := &containerSetup{
		RootFS:   img.rootFS,
		Scratch:  filepath.Join(c.dir(), "root"),
		Hostname: cmp.Or(c.pod.spec.Spec.Hostname, c.pod.spec.Name),
		Dir:      cmp.Or(c.spec.WorkingDir, img.config.WorkingDir, "/"),
	}
	if err := c.secure(s, img); err != nil {
		return nil, waitFor("CreateContainerConfigError", "%w", err)
	}
	values, err := c.environment(ctx)
	if err != nil {
		return nil, waitFor("CreateContainerConfigError", "%w", err)
	}
	s.Env = environ(img.config.Env, values)
	s.Command = slices.Concat(expandAll(c.spec.Command, values), expandAll(c.spec.Args, values))
	if len(c.spec.Command) == 0 {
		args := s.Command
		if len(args) == 0 {
			args = img.config.Cmd
		}
		s.Command = slices.Concat(img.config.Entrypoint, args)
	}
	if len(s.Command) == 0 {
		return nil, waitFor("CreateContainerError", "neither the container nor its image has a command")
	}
	if s.Mounts, err = c.mounts(); err != nil {
		return nil, waitFor("CreateContainerConfigError", "%w", err)
	}
	return s, nil
}

// dir has what the node needs for the container.
func (c *container) dir() string { return filepath.Join(c.pod.dir, "containers", c.spec.Name) }

// secure sets what the security contexts say.
func (c *container) secure(s *containerSetup, img *image) (err error) {
	ofPod, own := &corev1.PodSecurityContext{}, &corev1.SecurityContext{}
	if given := c.pod.spec.Spec.SecurityContext; given != nil {
		ofPod = given
	}
	if given := c.spec.SecurityContext; given != nil {
		own = given
	}
	user, group := first(own.RunAsUser, ofPod.RunAsUser), first(own.RunAsGroup, ofPod.RunAsGroup)
	if user == nil {
		if s.User, s.Group, err = img.user(); err != nil {
			return err
		}
	} else {
		s.User = int(*user)
	}
	if group != nil {
		s.Group = int(*group)
	}
	if nonRoot := first(own.RunAsNonRoot, ofPod.RunAsNonRoot); nonRoot != nil && *nonRoot && s.User == 0 {
		return errors.New("container has runAsNonRoot and image will run as root: set runAsUser, or a User in the image")
	}
	for _, id := range ofPod.SupplementalGroups {
		s.Groups = append(s.Groups, int(id))
	}
	if ofPod.FSGroup != nil {
		s.Groups = append(s.Groups, int(*ofPod.FSGroup))
	}
	s.ReadOnly = own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem
	s.NoNewPrivs = own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation
	var changes corev1.Capabilities
	if own.Capabilities != nil {
		changes = *own.Capabilities
	}
	for name, capability := range capabilities {
		dropped := slices.Contains(changes.Drop, name) || slices.Contains(changes.Drop, "ALL")
		if !dropped || slices.Contains(changes.Add, name) {
			s.Capabilities = append(s.Capabilities, capability)
		}
	}
	return nil
}

// mounts are the volumes of the container, and where it says why it ends.
func (c *container) mounts() ([]mount, error) {
	if err := os.MkdirAll(filepath.Join(c.dir(), "root"), 0o700); err != nil {
		return nil, err
	}
	// Empty, and for whichever user the container has.
	if err := errors.Join(os.WriteFile(c.terminationLog(), nil, 0o600), os.Chmod(c.terminationLog(), sharedFile)); err != nil {
		return nil, err
	}
	list := []mount{{Source: c.terminationLog(), Target: cmp.Or(c.spec.TerminationMessagePath, corev1.TerminationMessagePathDefault)}}
	for _, m := range c.spec.VolumeMounts {
		v := c.pod.volumes[m.Name]
		source := filepath.Join(v.dir, m.SubPath)
		if v.written() {
			// As it is now: through the link that is swapped.
			if resolved, err := filepath.EvalSymlinks(source); err == nil && m.SubPath != "" {
				source = resolved
			}
		} else if err := v.makeEmpty(source); err != nil {
			return nil, err
		}
		list = append(list, mount{Source: source, Target: m.MountPath, ReadOnly: m.ReadOnly || v.written()})
	}
	// What is mounted below another comes after it.
	slices.SortStableFunc(list, func(a, b mount) int { return strings.Compare(a.Target, b.Target) })
	return list, nil
}

func (c *container) terminationLog() string { return filepath.Join(c.dir(), "termination-log") }

// first is the first that is given.
func first[T any](values ...*T) *T {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}
