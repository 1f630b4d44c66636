package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// payload is the content of a volume: files by their paths.
type payload map[string]file

type file struct {
	data []byte
	mode int32
}

// The names that a kubelet uses.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
)

// defaultMode is that of files for which nothing says otherwise.
var defaultMode int32 = 0o644

func (p payload) equal(other payload) bool {
	return maps.EqualFunc(p, other, func(a, b file) bool { return a.mode == b.mode && bytes.Equal(a.data, b.data) })
}

// add adds all of an object, or the items of it that are chosen.
func (p payload) add(from string, data map[string][]byte, items []corev1.KeyToPath, optional bool, mode *int32) error {
	if len(items) == 0 {
		for name, value := range data {
			p[name] = file{value, *first(mode, &defaultMode)}
		}
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok && !optional {
			return fmt.Errorf("%s has no key %q", from, item.Key)
		}
		if ok {
			p[item.Path] = file{value, *first(item.Mode, mode, &defaultMode)}
		}
	}
	return nil
}

// write puts the files into a directory, in the place of those that are there, at
// once: they are in a directory of their own, to which a link leads that is swapped.
func (p payload) write(dir string, fsGroup *int64) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, openDir); err != nil { // for the container's user
		return err
	}
	fresh, err := os.MkdirTemp(dir, "..version_")
	if err != nil {
		return err
	}
	if err := os.Chmod(fresh, openDir); err != nil {
		return err
	}
	visible := map[string]bool{}
	for path, f := range p {
		if !filepath.IsLocal(path) {
			return fmt.Errorf("the path %q leaves the volume", path)
		}
		if err := f.write(fresh, path, fsGroup); err != nil {
			return err
		}
		top, _, _ := strings.Cut(path, "/")
		visible[top] = true
	}

	link := filepath.Join(dir, dataLink)
	old, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next := filepath.Join(dir, newDataLink)
	if err := os.Symlink(filepath.Base(fresh), next); err != nil {
		return err
	}
	if err := os.Rename(next, link); err != nil {
		return err
	}
	if err := publish(dir, visible); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

func (f file) write(dir, path string, fsGroup *int64) error {
	// The directories are the kubelet's; a umask may have its way with them.
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		parent := filepath.Join(dir, filepath.Join(parts[:i]...))
		if err := errors.Join(os.MkdirAll(parent, 0o700), os.Chmod(parent, openDir)); err != nil {
			return err
		}
	}
	path = filepath.Join(dir, path)
	if err := os.WriteFile(path, f.data, 0o600); err != nil {
		return err
	}
	mode := fs.FileMode(f.mode & 0o777)
	if fsGroup != nil {
		mode |= 0o440
		if err := os.Chown(path, -1, int(*fsGroup)); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

// publish makes the links by which the files are known, and removes the others.
func publish(dir string, visible map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); !visible[name] && !strings.HasPrefix(name, "..") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(visible)) {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
