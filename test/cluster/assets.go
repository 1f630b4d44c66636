package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const module = "module github.com/fencedlease/fencedlease\n"

// Root is the directory of the repository: the one above the working directory,
// or else above the running program, that holds this module.
func Root() (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err == nil && strings.HasPrefix(string(data), module) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("neither the working directory nor this program is in a clone of fencedlease")
}

// Asset is the path of a program of the control plane, kubectl for instance: in
// $KUBEBUILDER_ASSETS, or where `make control-plane` puts it.
func Asset(name string) (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "bin", "k8s")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return program(filepath.Join(dir, name), "make control-plane")
}

// program is the path of a program, or an error that says how to get it.
func program(path, how string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w; `%s` builds it", err, how)
	}
	return path, nil
}
