package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ownerVariable makes this test binary an owner that is about to be killed.
const ownerVariable = "FENCEDLEASE_TEST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVariable); dir != "" {
		own(dir)
	}
	os.Exit(m.Run())
}

// own starts a cluster in dir, says so, and never stops it.
func own(dir string) {
	if _, err := Start(context.Background(), Options{Dir: dir}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// mayImpersonateItself gives service account default/worker no more than that.
const mayImpersonateItself = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: impersonate-worker}
rules:
- verbs: [impersonate]
  apiGroups: [""]
  resources: [serviceaccounts]
  resourceNames: [worker]
- verbs: [impersonate]
  apiGroups: [authentication.k8s.io]
  resources: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: impersonate-worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: impersonate-worker}
subjects: [{kind: ServiceAccount, namespace: default, name: worker}]
`

func TestCluster(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "cluster")
	c, err := Start(ctx, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })

	t.Run("runs all of a control plane", func(t *testing.T) {
		for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
			if !slices.Contains(processes(t, dir), name) {
				t.Errorf("%s is not running", name)
			}
		}
	})

	t.Run("is what kubectl talks to", func(t *testing.T) {
		out, err := c.Kubectl(ctx, "version")
		if err != nil {
			t.Fatal(err)
		}
		if out.ExitCode != 0 || !strings.Contains(out.Stdout, "Server Version: v1.") {
			t.Errorf("got %+v", out)
		}
		out, err = c.Kubectl(ctx, "get", "configmap", "no-such")
		if err != nil {
			t.Fatal(err)
		}
		if out.ExitCode != 1 || !strings.Contains(out.Stderr, "NotFound") {
			t.Errorf("a missing object: got %+v", out)
		}
	})

	t.Run("knows people by their certificates", func(t *testing.T) {
		cfg, err := c.UserConfig("jane", "developers")
		if err != nil {
			t.Fatal(err)
		}
		self := whoAmI(ctx, t, cfg)
		if self.Username != "jane" || !slices.Contains(self.Groups, "developers") {
			t.Errorf("got %+v", self)
		}
		if id := self.Extra["authentication.kubernetes.io/credential-id"]; len(id) != 1 || !strings.HasPrefix(id[0], "X509SHA256=") {
			t.Errorf("credential-id %v", id)
		}
	})

	t.Run("knows processes by their Pod", func(t *testing.T) {
		cfg, err := c.PodConfig(ctx, "default", "worker", "worker-0")
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.PodConfig(ctx, "default", "worker", "worker-0")
		if err != nil {
			t.Fatal(err)
		}
		self, twin := whoAmI(ctx, t, cfg), whoAmI(ctx, t, again)
		if self.Username != "system:serviceaccount:default:worker" {
			t.Errorf("user %q", self.Username)
		}
		const uid = "authentication.kubernetes.io/pod-uid"
		if len(self.Extra[uid]) != 1 || !slices.Equal(self.Extra[uid], twin.Extra[uid]) {
			t.Errorf("pod-uid %v, and with another token %v", self.Extra[uid], twin.Extra[uid])
		}
	})

	t.Run("lets one impersonate oneself with an extra", func(t *testing.T) {
		cfg, err := c.PodConfig(ctx, "default", "worker", "worker-0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.mustKubectl(ctx, mayImpersonateItself, "apply", "--filename=-"); err != nil {
			t.Fatal(err)
		}
		as, err := ImpersonateExtra(ctx, cfg, map[string][]string{"fencedlease.io/token": {"7"}})
		if err != nil {
			t.Fatal(err)
		}
		before, after := whoAmI(ctx, t, cfg), whoAmI(ctx, t, as)
		if after.Username != before.Username || !slices.Equal(slices.Sorted(slices.Values(after.Groups)), slices.Sorted(slices.Values(before.Groups))) {
			t.Errorf("became %+v from %+v", after, before)
		}
		for key, value := range before.Extra {
			if !slices.Equal(after.Extra[key], value) {
				t.Errorf("extra %s became %v from %v", key, after.Extra[key], value)
			}
		}
		if got := after.Extra["fencedlease.io/token"]; !slices.Equal(got, authenticationv1.ExtraValue{"7"}) {
			t.Errorf("token %v", got)
		}
	})

	t.Run("stops for good", func(t *testing.T) {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if left := processes(t, dir); len(left) > 0 {
			t.Errorf("still running: %v", left)
		}
		if err := c.Stop(); err != nil {
			t.Errorf("the second time: %v", err)
		}
	})
}

func TestStartThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, APIServerArgs: []string{"--no-such-flag=true"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("the error should show what kube-apiserver said: %v", err)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func TestStartWantsAnEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "diary"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil {
		t.Error("it should refuse")
	}
}

// A test binary that panics or runs into its timeout stops nothing.
func TestAnOwnerThatIsKilledLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+dir)
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Process.Kill(); _ = owner.Wait() })

	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "started\n" {
		t.Fatalf("the owner says %q", line)
	}
	if running := processes(t, dir); len(running) != 3 {
		t.Fatalf("running: %v", running)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(processes(t, dir)) > 0; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("still running: %v", processes(t, dir))
		}
	}
}

// processes are the programs, this one aside, whose command lines mention dir.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		cmdline, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(cmdline), dir+"/") {
			continue
		}
		if exe, err := os.Readlink(filepath.Join(filepath.Dir(file), "exe")); err == nil {
			names = append(names, filepath.Base(exe))
		}
	}
	return names
}

func whoAmI(ctx context.Context, t *testing.T, cfg *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}
