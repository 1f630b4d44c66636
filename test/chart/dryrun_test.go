package chart

import (
	"strings"

	"github.com/fencedlease/fencedlease/test/suite"
)

// dryRuns has the API server look at everything that the chart can render, with
// strict validation, before anything is installed. It knows the kinds of
// cert-manager and of the Prometheus operator by CRDs that have those fields only
// that the chart uses (testdata/crds.yaml).
func dryRuns(w *suite.World) {
	w.T.Helper()
	kubectl := func(stdin string, args ...string) {
		w.T.Helper()
		out, err := plane.KubectlInput(w.Ctx, stdin, args...)
		w.Must(err)
		if out.ExitCode != 0 || out.Stderr != "" {
			w.T.Fatalf("kubectl %q: exit status %d\n%s", args, out.ExitCode, out.Stderr)
		}
	}
	kubectl("", "apply", "--server-side", "--filename=testdata/crds.yaml")
	kubectl("", "wait", "--for=condition=Established", "--timeout=60s", "--filename=testdata/crds.yaml")
	for name, args := range map[string][]string{
		"by default": nil,
		"everything": everything,
		"an issuer":  {"--set=certificates.mode=certManager", "--set=certificates.certManager.issuerRef.name=corp"},
		"extras": {
			"--set-json=extraVolumes=" + changes["extraVolumes"].to, "--set-json=extraVolumeMounts=" + changes["extraVolumeMounts"].to,
			"--set-json=extraEnv=" + changes["extraEnv"].to, "--set-json=extraObjects=" + changes["extraObjects"].to,
			"--set-json=tolerations=" + changes["tolerations"].to, "--set-json=affinity=" + changes["affinity"].to,
			"--set-json=imagePullSecrets=" + changes["imagePullSecrets"].to, "--set=networkPolicy.enabled=true",
			"--set-json=networkPolicy.metricsFrom=" + changes["networkPolicy.metricsFrom"].to,
			"--set=image.digest=sha256:" + strings.Repeat("0", 64),
		},
	} {
		text, err := template(w.T, args...)
		w.Must(err)
		w.T.Log("dry run: ", name)
		kubectl(text, "apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-")
	}
}
