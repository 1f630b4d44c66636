package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// followPeriod is how often a log is looked at that somebody follows.
const followPeriod = 100 * time.Millisecond

// logSpan is the part of a log file that an instance of a container wrote.
type logSpan struct {
	begin, end int64 // there is no end yet if it is negative
}

func (c *container) logPath() string {
	return filepath.Join(c.pod.agent.dir, c.pod.spec.Namespace+"_"+c.pod.spec.Name+"_"+c.spec.Name+".log")
}

// openLog opens the log of the container for a new instance.
func (c *container) openLog() (*os.File, error) {
	log, err := os.OpenFile(c.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	c.logs = append(c.logs[max(0, len(c.logs)-1):], &logSpan{begin, -1})
	return log, nil
}

// closeLog notes that the instance has ended.
func (c *container) closeLog(log *os.File) {
	end, err := log.Seek(0, io.SeekEnd)
	if err = errors.Join(err, log.Close()); err != nil {
		slog.Error("a log", "error", err)
	}
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	c.logs[len(c.logs)-1].end = end
}

// terminationMessage is what the container says about its end.
func (c *container) terminationMessage(code int32) string {
	const most = 4096
	text, err := os.ReadFile(c.terminationLog())
	if err == nil && len(text) == 0 && code != 0 && c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		text, err = os.ReadFile(c.logPath())
	}
	if err != nil {
		slog.Error("a termination message", "error", err)
	}
	return string(text[max(0, len(text)-most):])
}

// serveLogs serves the logs as a kubelet does, until the context ends.
func (a *agent) serveLogs(ctx context.Context) (port int32, err error) {
	host := a.address.Addr().String()
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return 0, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return 0, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.getLogs)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: requestTimeout,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	a.wg.Go(func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the logs are not served any more", "error", err)
		}
	})
	a.wg.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no port for the logs")
	}
	return int32(address.AddrPort().Port()), nil
}

// getLogs serves the log of one instance of a container.
func (a *agent) getLogs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for _, option := range []string{"sinceSeconds", "sinceTime", "timestamps", "limitBytes"} {
		if query.Has(option) {
			http.Error(w, "this test node does not support "+option+" for logs", http.StatusNotImplemented)
			return
		}
	}
	c := a.findContainer(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	if c == nil {
		http.Error(w, "the node has no such container", http.StatusNotFound)
		return
	}
	span := c.logSpan(query.Get("previous") == "true")
	if span == nil {
		http.Error(w, "the container has not run", http.StatusNotFound)
		return
	}
	log, err := os.Open(c.logPath())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = log.Close() }()
	at := span.begin
	if lines, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		at = tail(log, at, c.logEnd(span), lines)
	}
	for {
		end := c.logEnd(span) // before the file is read: what is in it then is all
		until := end
		if end < 0 {
			until = math.MaxInt64
		}
		n, err := io.Copy(w, io.NewSectionReader(log, at, until-at))
		at += n
		if err != nil || end >= 0 || query.Get("follow") != "true" || r.Context().Err() != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		sleep(r.Context(), followPeriod)
	}
}

// tail is where the last lines of a part of a log begin.
func tail(log io.ReaderAt, begin, end int64, lines int) int64 {
	if end < 0 {
		end = math.MaxInt64
	}
	data, err := io.ReadAll(io.NewSectionReader(log, begin, end-begin))
	if err != nil {
		return begin
	}
	at := len(data)
	for ; lines >= 0 && at > 0; lines-- {
		if lines == 0 {
			return begin + int64(at)
		}
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	return begin + int64(at)
}

func (a *agent) findContainer(namespace, podName, name string) *container {
	p := a.find(namespace, podName)
	if p == nil {
		return nil
	}
	for _, c := range slices.Concat(p.inits, p.containers) {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

// logSpan is where the log of the last instance is, or of the one before it.
func (c *container) logSpan(previous bool) *logSpan {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	i := len(c.logs) - 1
	if previous {
		i--
	}
	if i < 0 {
		return nil
	}
	return c.logs[i]
}

func (c *container) logEnd(span *logSpan) int64 {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return span.end
}
