package load

import (
	"fmt"

	"github.com/fencedlease/fencedlease/test/suite"
)

// calls is how often the API server called a webhook so far, as the manager
// counts it.
func calls(w *suite.World, path string) int {
	w.T.Helper()
	families, err := suite.Manager.Metrics(w.Ctx)
	w.Must(err)
	var sum float64
	for _, metric := range families["controller_runtime_webhook_requests_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "webhook" && label.GetValue() == path {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}

// awaitCalls waits until a webhook was called that often: the manager counts a
// call a moment after it answered.
func awaitCalls(w *suite.World, path string, want int) {
	w.T.Helper()
	w.Eventually(fmt.Sprintf("%s was called %d times", path, want), func() error {
		if got := calls(w, path); got != want {
			return fmt.Errorf("it was called %d times", got)
		}
		return nil
	})
}
