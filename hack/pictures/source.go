package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source is a Prometheus, and the time that the pictures show.
type source struct {
	url          string
	from, to     time.Time
	rateInterval time.Duration
	variables    map[string]string
}

// points is how many moments a picture shows at most: more are no longer apart.
const points = 300

// step is the time between two moments.
func (s *source) step() time.Duration {
	least := s.to.Sub(s.from) / points
	for _, step := range niceTimes {
		if step >= least {
			return step
		}
	}
	return least.Round(time.Hour)
}

// niceTimes are those that a reader counts in.
var niceTimes = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// series is a result: labels and values.
type series struct {
	labels map[string]string
	points []point
}

type point struct {
	at    time.Time
	value float64
}

// seconds is a duration as PromQL has it.
func seconds(d time.Duration) string { return strconv.Itoa(int(d.Round(time.Second).Seconds())) + "s" }

// learn the values of the variables: all of them, as Grafana does at first.
func (s *source) learn(ctx context.Context, board *dashboard) error {
	s.variables = map[string]string{
		"__rate_interval": seconds(max(s.rateInterval, 2*s.step())),
		"__interval":      seconds(s.step()),
		"__range":         seconds(s.to.Sub(s.from)),
	}
	for _, v := range board.Templating.List {
		switch {
		case v.Type == "datasource":
		case v.AllValue != "":
			s.variables[v.Name] = v.AllValue
		default:
			match := listPattern.FindStringSubmatch(v.Definition)
			if match == nil {
				return fmt.Errorf("variable %s lists %q", v.Name, v.Definition)
			}
			var values []string
			query := url.Values{"match[]": {s.expand(match[1])}}
			s.within(query)
			if err := s.get(ctx, "/api/v1/label/"+match[2]+"/values", query, &values); err != nil {
				return err
			}
			if len(values) == 0 {
				return fmt.Errorf("variable %s: there is no %s", v.Name, v.Definition)
			}
			for i := range values {
				values[i] = regexp.QuoteMeta(values[i])
			}
			// As a string of PromQL has it.
			s.variables[v.Name] = strings.ReplaceAll("("+strings.Join(values, "|")+")", `\`, `\\`)
		}
	}
	return nil
}

var (
	listPattern     = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	variablePattern = regexp.MustCompile(`\$(\w+)`)
)

// expand is an expression with the values of the variables.
func (s *source) expand(expr string) string {
	return variablePattern.ReplaceAllStringFunc(expr, func(name string) string {
		if value, ok := s.variables[name[1:]]; ok {
			return value
		}
		return name // which Prometheus will complain of
	})
}

// within adds the time to a query.
func (s *source) within(query url.Values) {
	query.Set("start", unix(s.from))
	query.Set("end", unix(s.to))
}

func unix(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// ask for what a query of a panel gives: at the end, or all the time.
func (s *source) ask(ctx context.Context, expr string, instant bool) ([]series, error) {
	query := url.Values{"query": {s.expand(expr)}}
	path := "/api/v1/query_range"
	if instant {
		path = "/api/v1/query"
		query.Set("time", unix(s.to))
	} else {
		s.within(query)
		query.Set("step", seconds(s.step()))
	}
	var data struct {
		Result []struct {
			Metric map[string]string    `json:"metric"`
			Value  [2]json.RawMessage   `json:"value"`
			Values [][2]json.RawMessage `json:"values"`
		} `json:"result"`
	}
	if err := s.get(ctx, path, query, &data); err != nil {
		return nil, err
	}
	var found []series
	for _, result := range data.Result {
		pairs := result.Values
		if instant {
			pairs = [][2]json.RawMessage{result.Value}
		}
		one := series{labels: result.Metric}
		for _, pair := range pairs {
			p, err := parsePoint(pair)
			if err != nil {
				return nil, err
			}
			if !math.IsNaN(p.value) && !math.IsInf(p.value, 0) {
				one.points = append(one.points, p)
			}
		}
		if len(one.points) > 0 {
			found = append(found, one)
		}
	}
	// Prometheus has no order for those of one moment.
	slices.SortFunc(found, func(a, b series) int { return strings.Compare(fmt.Sprint(a.labels), fmt.Sprint(b.labels)) })
	return found, nil
}

func parsePoint(pair [2]json.RawMessage) (p point, err error) {
	var at float64
	var text string
	if err := json.Unmarshal(pair[0], &at); err != nil {
		return p, err
	}
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return p, err
	}
	p.at = time.UnixMilli(int64(math.Round(at * 1000)))
	p.value, err = strconv.ParseFloat(text, 64)
	return p, err
}

// get an answer of the API.
func (s *source) get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Data  json.RawMessage `json:"data"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("%s: %s: %w", s.url, response.Status, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", s.url, response.Status, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}
