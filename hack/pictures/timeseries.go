package main

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"time"
)

// curve is a series as it is drawn.
type curve struct {
	look

	series

	shade color.RGBA
	base  []float64 // what it is stacked on, for each point
}

// curves are all series of a panel, each with its name and color.
func (d *drawn) curves(results [][]series) ([]curve, error) {
	var all []curve
	for i, found := range results {
		for _, one := range found {
			name, err := d.panel.rename(legend(d.panel.Targets[i].LegendFormat, one.labels))
			if err != nil {
				return nil, err
			}
			l, err := d.panel.lookOf(name)
			if err != nil {
				return nil, err
			}
			shade := palette[len(all)%len(palette)]
			if l.color != "" {
				if shade, err = colorOf(l.color); err != nil {
					return nil, err
				}
			}
			all = append(all, curve{look: l, series: one, shade: shade, base: make([]float64, len(one.points))})
		}
	}
	if d.panel.FieldConfig.Defaults.Custom.Stacking.Mode == "normal" {
		stack(all)
	}
	return all, nil
}

var labelPattern = regexp.MustCompile(`\{\{ *(\w+) *\}\}`)

// legend is the name of a series.
func legend(format string, labels map[string]string) string {
	return labelPattern.ReplaceAllStringFunc(format, func(name string) string {
		return labels[labelPattern.FindStringSubmatch(name)[1]]
	})
}

// rename a series as the panel says.
func (p *panel) rename(name string) (string, error) {
	for _, t := range p.Transformations {
		if t.ID != "renameByRegex" {
			return "", fmt.Errorf("a transformation %q", t.ID)
		}
		pattern, err := regexp.Compile(t.Options.Regex)
		if err != nil {
			return "", err
		}
		name = pattern.ReplaceAllString(name, numberPattern.ReplaceAllString(t.Options.RenamePattern, "$${$1}"))
	}
	return name, nil
}

// numberPattern is how JavaScript refers to a group.
var numberPattern = regexp.MustCompile(`\$(\d)`)

// stack each curve on those before it.
func stack(all []curve) {
	sums := map[time.Time]float64{}
	for _, c := range all {
		for i, p := range c.points {
			c.base[i] = sums[p.at]
			sums[p.at] += p.value
		}
	}
}

// timeseries draws curves, and their legend below.
func (d *drawn) timeseries(at box, results [][]series) error {
	all, err := d.curves(results)
	if err != nil {
		return err
	}
	legendHeight, err := d.legend(at, all)
	if err != nil {
		return err
	}
	defaults := d.panel.FieldConfig.Defaults
	area := box{at.x, at.y, at.w, at.h - legendHeight}
	a, err := d.axisOf(all, int(area.h/45))
	if err != nil {
		return err
	}
	p, err := d.axes(area, a, defaults.Unit, nil)
	if err != nil {
		return err
	}
	if err := d.limits(p); err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		d.curve(p, all[i])
	}
	return d.annotate(p)
}

// axisOf is the axis on which all curves are to be seen.
func (d *drawn) axisOf(all []curve, ticks int) (axis, error) {
	f := d.panel.FieldConfig.Defaults
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range all {
		for i, p := range c.points {
			low, high = min(low, p.value+c.base[i]), max(high, p.value+c.base[i])
		}
	}
	if f.Custom.AxisSoftMax != nil {
		high = max(high, *f.Custom.AxisSoftMax)
	}
	if f.Min != nil {
		low = *f.Min
	}
	if f.Max != nil {
		high = *f.Max
	}
	if f.Custom.ScaleDistribution.Type == "log" {
		if low <= 0 {
			return axis{}, fmt.Errorf("a logarithmic axis from %g", low)
		}
		return logAxis(low, high), nil
	}
	return linearAxis(low, high, max(2, ticks), f.Unit, f.Decimals != nil && *f.Decimals == 0), nil
}

// limits draws the thresholds.
func (d *drawn) limits(p plot) error {
	f := d.panel.FieldConfig.Defaults
	mode := f.Custom.ThresholdsStyle.Mode
	if mode == "off" || mode == "" {
		return nil
	}
	for _, step := range f.Thresholds.Steps {
		if step.Value == nil || *step.Value > p.axis.max || *step.Value < p.axis.min {
			continue
		}
		shade, err := colorOf(step.Color)
		if err != nil {
			return err
		}
		y := p.atY(*step.Value)
		if mode == "line+area" {
			d.fill(box{p.x, p.y, p.w, y - p.y}, seen(shade, 0.1))
		}
		d.line(p.x, y, p.x+p.w, y, 1, shade)
	}
	return nil
}

// curve draws one: its area, then its line. Where a moment has no value, it ends.
func (d *drawn) curve(p plot, c curve) {
	f := d.panel.FieldConfig.Defaults.Custom
	for from := 0; from < len(c.points); {
		to := from + 1
		for to < len(c.points) && c.points[to].at.Sub(c.points[to-1].at) <= d.source.step()*3/2 {
			to++
		}
		piece := curve{look: c.look, series: series{points: c.points[from:to]}, shade: c.shade, base: c.base[from:to]}
		if f.FillOpacity > 0 {
			d.trace(p, piece, f.LineInterpolation, true)
			d.SetColor(seen(c.shade, f.FillOpacity/100))
			d.Fill()
		}
		d.trace(p, piece, f.LineInterpolation, false)
		d.SetColor(c.shade)
		d.SetLineWidth(f.LineWidth * 0.8 * density)
		d.Stroke()
		from = to
	}
}

// trace the upper edge of a curve and, for an area, back along the lower one.
func (d *drawn) trace(p plot, c curve, interpolation string, area bool) {
	edge := func(i int, base bool) (x, y float64) {
		value := c.base[i]
		if !base {
			value += c.points[i].value
		}
		return p.atX(c.points[i].at), p.atY(value)
	}
	d.NewSubPath()
	for i := range c.points {
		x, y := edge(i, false)
		if i > 0 && interpolation == "stepAfter" {
			_, before := edge(i-1, false)
			d.LineTo(x, before)
		}
		d.LineTo(x, y)
	}
	if len(c.points) == 1 { // a single moment is a dash
		x, y := edge(0, false)
		d.LineTo(x+1, y)
	}
	if !area {
		return
	}
	for i := len(c.points) - 1; i >= 0; i-- {
		x, y := edge(i, true)
		if i < len(c.points)-1 && interpolation == "stepAfter" {
			after, _ := edge(i+1, true)
			d.LineTo(after, y)
		}
		d.LineTo(x, y)
	}
	d.ClosePath()
}
