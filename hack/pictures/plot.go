package main

import (
	"fmt"
	"time"
)

// plot is the part of a panel with axes: time, and values.
type plot struct {
	box

	axis     axis
	from, to time.Time
}

// atX is where a moment is.
func (p plot) atX(t time.Time) float64 {
	return p.x + p.w*float64(t.Sub(p.from))/float64(p.to.Sub(p.from))
}

// atY is where a value is; what is out of range is at the edge.
func (p plot) atY(value float64) float64 {
	return p.y + p.h*(1-min(1, max(0, p.axis.share(value))))
}

// axes draws both axes with their labels into a box, and is the plot between them.
func (d *drawn) axes(at box, a axis, unit string, decimals *int) (plot, error) {
	labels := make([]string, len(a.ticks))
	wide := 0.0
	for i, tick := range a.ticks {
		words, err := format(tick, unit, decimals)
		if err != nil {
			return plot{}, err
		}
		w, err := d.width(words, smallStyle)
		if err != nil {
			return plot{}, err
		}
		labels[i], wide = words, max(wide, w)
	}
	p := plot{
		box:  box{at.x + wide + 6, at.y + 6, at.w - wide - 12, at.h - 24},
		axis: a, from: d.source.from, to: d.source.to,
	}
	for i, tick := range a.ticks {
		y := p.atY(tick)
		d.line(p.x, y, p.x+p.w, y, 0.7, gridLine)
		if err := d.write(labels[i], p.x-6, y, 1, smallStyle, faint); err != nil {
			return p, err
		}
	}
	return p, d.timeAxis(p)
}

// timeAxis is below a plot.
func (d *drawn) timeAxis(p plot) error {
	ticks, layout := timeTicks(p.from, p.to, int(p.w/58))
	for _, tick := range ticks {
		x := p.atX(tick)
		d.line(x, p.y, x, p.y+p.h, 0.7, gridLine)
		if x < p.x+12 || x > p.x+p.w-12 {
			continue
		}
		if err := d.write(tick.UTC().Format(layout), x, p.y+p.h+10, 0.5, smallStyle, faint); err != nil {
			return err
		}
	}
	return nil
}

// annotate marks when something was annotated.
func (d *drawn) annotate(p plot) error {
	shade, err := colorOf("red")
	if err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	for _, m := range d.marks {
		x := p.atX(m.from)
		d.line(x, p.y, x, p.y+p.h, 0.8, seen(shade, 0.8), 4, 3)
		d.fill(box{x, p.y + p.h, max(2, p.atX(m.to)-x), 2}, shade)
	}
	return nil
}
