package cluster

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestManager(t *testing.T) {
	ctx := t.Context()
	c, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if stopErr := c.Stop(); stopErr != nil {
			t.Error(stopErr)
		}
	})
	if _, err = c.StartManager(ctx, ManagerOptions{}); err == nil {
		t.Fatal("a manager without an installation should be an error")
	}
	if err = c.Install(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := c.StartManager(ctx, ManagerOptions{})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("says what it does", func(t *testing.T) {
		families, err := m.Metrics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if families["go_goroutines"] == nil {
			t.Errorf("got %d metric families", len(families))
		}
		if m.Log() == "" {
			t.Error("no log")
		}
	})

	t.Run("answers nothing while it is paused", func(t *testing.T) {
		if err := m.Pause(); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := c.validatingInForce(soon); err == nil {
			t.Error("a webhook answered")
		}
		if err := m.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := c.waitForWebhooks(ctx, m.Done()); err != nil {
			t.Error(err)
		}
	})

	t.Run("is called again after a crash and a restart", func(t *testing.T) {
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
		<-m.Done()
		if err := c.validatingInForce(ctx); err == nil {
			t.Error("a webhook answered")
		}
		for range 2 { // once after the crash, once while it runs
			if err := m.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("can have a second beside it", func(t *testing.T) {
		port, err := FreePort(ctx)
		if err != nil {
			t.Fatal(err)
		}
		second, err := c.StartManager(ctx, ManagerOptions{ExtraArgs: []string{"--webhook-port=" + strconv.Itoa(port)}})
		if err != nil {
			t.Fatal(err)
		}
		if second.LogPath == m.LogPath {
			t.Error("they share a log")
		}
		if err := second.Stop(ctx); err != nil {
			t.Error(err)
		}
	})

	t.Run("that fails is an error with its last words", func(t *testing.T) {
		log := filepath.Join(t.TempDir(), "manager.log")
		_, err := c.StartManager(ctx, ManagerOptions{LogPath: log, ExtraArgs: []string{"--kubeconfig=/no/such/file"}})
		if err == nil || !strings.Contains(err.Error(), "/no/such/file") {
			t.Errorf("error %v", err)
		}
	})

	t.Run("ends cleanly when asked", func(t *testing.T) {
		if err := m.Stop(ctx); err != nil {
			t.Errorf("%v\n%s", err, m.Log())
		}
	})
}
