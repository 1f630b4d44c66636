package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// dashboard is what there is to know of Grafana's JSON.
type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []dashboardVariable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

type dashboardVariable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
	AllValue   string `json:"allValue"`
}

// annotation is what is marked in all panels.
type annotation struct {
	Enable bool   `json:"enable"`
	Expr   string `json:"expr"`
}

// The kinds of panels.
const (
	kindRow        = "row"
	kindStat       = "stat"
	kindTimeseries = "timeseries"
	kindTable      = "table"
	kindHeatmap    = "heatmap"
)

type panel struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos grid   `json:"gridPos"`

	Targets         []target         `json:"targets"`
	Transformations []transformation `json:"transformations"`
	FieldConfig     struct {
		Defaults  field      `json:"defaults"`
		Overrides []override `json:"overrides"`
	} `json:"fieldConfig"`
	Options struct {
		ColorMode string `json:"colorMode"`
		Legend    struct {
			Calcs []string `json:"calcs"`
		} `json:"legend"`
		YAxis struct {
			Unit string `json:"unit"`
		} `json:"yAxis"`
		SortBy []struct {
			DisplayName string `json:"displayName"`
			Desc        bool   `json:"desc"`
		} `json:"sortBy"`
	} `json:"options"`
}

type grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	RefID        string `json:"refId"`
	Instant      bool   `json:"instant"`
}

type transformation struct {
	ID      string `json:"id"`
	Options struct {
		ExcludeByName map[string]bool   `json:"excludeByName"`
		IndexByName   map[string]int    `json:"indexByName"`
		RenameByName  map[string]string `json:"renameByName"`
		Regex         string            `json:"regex"`
		RenamePattern string            `json:"renamePattern"`
	} `json:"options"`
}

// field says how values are shown.
type field struct {
	Unit       string     `json:"unit"`
	Decimals   *int       `json:"decimals"`
	Min        *float64   `json:"min"`
	Max        *float64   `json:"max"`
	NoValue    string     `json:"noValue"`
	Thresholds thresholds `json:"thresholds"`
	Custom     struct {
		LineInterpolation string   `json:"lineInterpolation"`
		LineWidth         float64  `json:"lineWidth"`
		FillOpacity       float64  `json:"fillOpacity"`
		AxisSoftMax       *float64 `json:"axisSoftMax"`
		Stacking          struct {
			Mode string `json:"mode"`
		} `json:"stacking"`
		ScaleDistribution struct {
			Type string `json:"type"`
		} `json:"scaleDistribution"`
		ThresholdsStyle struct {
			Mode string `json:"mode"`
		} `json:"thresholdsStyle"`
	} `json:"custom"`
}

type thresholds struct {
	Steps []step `json:"steps"`
}

// step is a color from a value on; nil is from the beginning.
type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// of is the color of a value.
func (t thresholds) of(value float64) string {
	color := ""
	for _, step := range t.Steps {
		if step.Value == nil || value >= *step.Value {
			color = step.Color
		}
	}
	return color
}

// override is how the field of a name is shown otherwise.
type override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options string `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"properties"`
}

// look is how a field of a name is shown.
type look struct {
	field

	name    string
	color   string // fixed; by default one of the palette
	colored bool   // text in the color of the threshold
	link    bool
}

// lookOf is the look of a field of that name.
func (p *panel) lookOf(name string) (look, error) {
	l := look{field: p.FieldConfig.Defaults, name: name}
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.ID != "byName" {
			return l, fmt.Errorf("an override %s", o.Matcher.ID)
		}
		if o.Matcher.Options != name {
			continue
		}
		for _, property := range o.Properties {
			if err := l.set(property.ID, property.Value); err != nil {
				return l, err
			}
		}
	}
	return l, nil
}

func (l *look) set(id string, value json.RawMessage) error {
	switch id {
	case "displayName":
		return json.Unmarshal(value, &l.name)
	case "unit":
		return json.Unmarshal(value, &l.Unit)
	case "thresholds":
		l.Thresholds = thresholds{}
		return json.Unmarshal(value, &l.Thresholds)
	case "color":
		var c struct {
			FixedColor string `json:"fixedColor"`
		}
		err := json.Unmarshal(value, &c)
		l.color = c.FixedColor
		return err
	case "custom.cellOptions":
		var c struct {
			Type string `json:"type"`
		}
		err := json.Unmarshal(value, &c)
		l.colored = c.Type == "color-text"
		return err
	case "links":
		l.link = true
		return nil
	}
	return errors.New("an override of " + strconv.Quote(id))
}

func readDashboard(file string) (*dashboard, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	board := &dashboard{}
	if err := json.Unmarshal(data, board); err != nil {
		return nil, err
	}
	if len(board.Panels) == 0 || board.Panels[0].Type != kindRow {
		return nil, errors.New("it does not begin with a row")
	}
	return board, nil
}

// row is what is in one picture.
type row struct {
	title  string
	top    int // its line in the grid
	panels []panel
	marks  []string // the expressions of annotations
}

// rows are those of the dashboard, each with its panels.
func (d *dashboard) rows() []row {
	var marks []string
	for _, a := range d.Annotations.List {
		if a.Enable && a.Expr != "" {
			marks = append(marks, a.Expr)
		}
	}
	var rows []row
	for _, p := range d.Panels {
		if p.Type == kindRow {
			rows = append(rows, row{title: p.Title, top: p.GridPos.Y + 1, marks: marks})
			continue
		}
		last := &rows[len(rows)-1]
		last.panels = append(last.panels, p)
	}
	return rows
}
