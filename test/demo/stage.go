package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fencedlease/fencedlease/test/cluster"
	"github.com/fencedlease/fencedlease/test/cluster/process"
)

// stage is where the story is told: a cluster, kubectl, and workers.
type stage struct {
	cluster *cluster.Cluster
	out     io.Writer
	self    string // this program, for the workers
}

func newStage(c *cluster.Cluster, out io.Writer) (*stage, error) {
	self, err := os.Executable()
	return &stage{cluster: c, out: out, self: self}, err
}

func (s *stage) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format+"\n", args...)
}

// kubectl runs a command and shows it as a terminal would. It returns what the
// command printed.
func (s *stage) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	shown := strings.Join(args, " ")
	if stdin != "" {
		shown += " <<EOF\n" + strings.TrimSpace(stdin) + "\nEOF"
	}
	s.say("  $ kubectl %s", strings.ReplaceAll(shown, "\n", "\n  "))
	result, err := s.cluster.KubectlInput(ctx, stdin, args...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(result.Stderr + result.Stdout) {
		s.say("  %s", strings.TrimRight(line, "\n"))
	}
	if result.ExitCode != 0 {
		return "", fmt.Errorf("kubectl %s ended with status %d", args[0], result.ExitCode)
	}
	return result.Stdout, nil
}

// allow gives the workers' service account what their work needs, and no more.
func (s *stage) allow(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.cluster.Admin)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}
	_, err = client.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: serviceAccount},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: serviceAccount}},
	}, metav1.CreateOptions{})
	return err
}

const serviceAccount = "worker"

// actor is a worker process that is watched.
type actor struct {
	name    string
	process *process.Process
	log     string
}

// start starts a worker as a process of a Pod of its own. It writes so many times
// in a term, or without limit if that is 0.
func (s *stage) start(ctx context.Context, act, name, balance string, writes int) (*actor, error) {
	id := act + "-" + name
	config, err := s.cluster.PodConfig(ctx, namespace, serviceAccount, id)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(s.cluster.Dir, id+".kubeconfig")
	if err := s.cluster.Kubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	a := &actor{name: name, log: filepath.Join(s.cluster.Dir, id+".log")}
	a.process, err = process.Start(s.cluster.Dir, id, s.self, a.log,
		"worker", "-name="+name, "-balance="+balance, "-writes="+strconv.Itoa(writes), "-kubeconfig="+kubeconfig)
	return a, err
}

// stop ends a worker, which releases the Lease if it holds it.
func (a *actor) stop() error { return a.process.Stop(10 * time.Second) }

func (a *actor) pause() error  { return a.process.Pause() }
func (a *actor) resume() error { return a.process.Resume() }

// said are the lines of one kind that a worker wrote, after the first skip lines.
func (a *actor) said(what string, skip int) ([]string, error) {
	lines, err := a.lines()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, line := range lines[min(skip, len(lines)):] {
		kind, more, _ := strings.Cut(line, " ")
		if kind == saidFailed {
			return nil, fmt.Errorf("worker %s: %s", a.name, more)
		}
		if kind == what {
			found = append(found, more)
		}
	}
	return found, nil
}

// lines are the whole lines that a worker wrote.
func (a *actor) lines() ([]string, error) {
	data, err := os.ReadFile(a.log)
	if err != nil {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	return strings.FieldsFunc(string(whole), func(r rune) bool { return r == '\n' }), nil
}

// await waits until a worker says something, after the first skip lines.
func (a *actor) await(ctx context.Context, what string, skip int) (string, error) {
	for {
		ended := isClosed(a.process.Done()) // before its last lines are read
		found, err := a.said(what, skip)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return found[0], nil
		}
		if ended {
			return "", fmt.Errorf("worker %s ended before it %s:\n%s", a.name, what, process.Tail(a.log, 5))
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(fmt.Errorf("worker %s never %s", a.name, what), ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
