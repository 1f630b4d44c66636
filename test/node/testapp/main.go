// Command testapp is what the containers of the tests run. It is linked statically,
// and needs nothing of its image.
//
//	testapp serve        serve HTTP at :8080, or $PORT, until SIGTERM
//	testapp deaf         the same, but pay no heed to SIGTERM
//	testapp exit CODE    say so, and end
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "serve":
		serve(false)
	case "deaf":
		serve(true)
	case "exit":
		code, err := strconv.Atoi(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		log.Printf("exit %d", code)
		os.Exit(code)
	default:
		log.Fatalf("no such command: %q", os.Args[1])
	}
}

func serve(deaf bool) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	var unready atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if unready.Load() {
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /unready", func(http.ResponseWriter, *http.Request) { unready.Store(true) })
	mux.HandleFunc("POST /ready", func(http.ResponseWriter, *http.Request) { unready.Store(false) })
	mux.HandleFunc("POST /exit", func(http.ResponseWriter, *http.Request) { os.Exit(7) })
	mux.HandleFunc("GET /file/{path...}", answer(func(r *http.Request) ([]byte, error) {
		return os.ReadFile("/" + r.PathValue("path"))
	}))
	mux.HandleFunc("PUT /file/{path...}", answer(func(r *http.Request) ([]byte, error) {
		return nil, os.WriteFile("/"+r.PathValue("path"), []byte("written"), 0o600)
	}))
	mux.HandleFunc("GET /env", answer(func(*http.Request) ([]byte, error) {
		return []byte(strings.Join(os.Environ(), "\n")), nil
	}))
	mux.HandleFunc("GET /args", answer(func(*http.Request) ([]byte, error) {
		return []byte(strings.Join(os.Args, " ")), nil
	}))
	mux.HandleFunc("GET /self", answer(func(r *http.Request) ([]byte, error) { return self(r.Context()) }))

	server := &http.Server{Addr: ":" + cmp.Or(os.Getenv("PORT"), "8080"), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-terminated
		log.Print("SIGTERM")
		if !deaf {
			os.Exit(0)
		}
	}()
	log.Print("serving")
	log.Fatal(server.ListenAndServe())
}

func answer(f func(*http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := f(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(data)
	}
}

// self asks the API server who it takes this Pod for, as a client in a cluster does.
func self(ctx context.Context) ([]byte, error) {
	const dir = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, err := os.ReadFile(dir + "token")
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(dir + "ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	url := fmt.Sprintf("https://%s:%s/apis/authentication.k8s.io/v1/selfsubjectreviews",
		os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}
