package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lengths of a picture.
const (
	pictureWidth = 1080
	gridColumns  = 24
	gridHeight   = 38 // of one line, the gap included
	gap          = 8
	rowHeader    = 34
	panelHeader  = 30
	panelPadding = 10
)

var (
	rowStyle   = style{size: 15, bold: true}
	titleStyle = style{size: 12.5, bold: true}
	plainStyle = style{size: 11}
	smallStyle = style{size: 10}
)

// drawn is what a panel is drawn with.
type drawn struct {
	*canvas

	panel  *panel
	source *source
	marks  []mark
}

// mark is a time in which something is annotated.
type mark struct{ from, to time.Time }

// drawRow is the picture of a row.
func drawRow(ctx context.Context, source *source, row row, mayBeEmpty titles) ([]byte, error) {
	lines := 0
	for _, p := range row.panels {
		lines = max(lines, p.GridPos.Y+p.GridPos.H-row.top)
	}
	c := newCanvas(pictureWidth, float64(rowHeader+lines*gridHeight+gap))
	c.fill(box{0, 0, pictureWidth, float64(rowHeader + lines*gridHeight + gap)}, background)
	if err := header(c, source, row.title); err != nil {
		return nil, err
	}
	marks, err := source.marks(ctx, row.marks)
	if err != nil {
		return nil, err
	}
	var errs []error
	column := float64(pictureWidth-gap) / gridColumns
	for i := range row.panels {
		p := &row.panels[i]
		at := box{
			gap + float64(p.GridPos.X)*column, rowHeader + float64((p.GridPos.Y-row.top)*gridHeight),
			float64(p.GridPos.W)*column - gap, float64(p.GridPos.H*gridHeight - gap),
		}
		d := &drawn{canvas: c, panel: p, source: source, marks: marks}
		err := d.draw(ctx, at)
		if errors.Is(err, errEmpty) && mayBeEmpty[p.Title] {
			err = c.write("No data", at.x+at.w/2, at.y+at.h/2, 0.5, plainStyle, faint)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %s: %w", row.title, p.Title, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c.encode()
}

// header says which row it is, and when.
func header(c *canvas, source *source, title string) error {
	c.MoveTo(gap+3, 15)
	c.LineTo(gap+11, 15)
	c.LineTo(gap+7, 20)
	c.ClosePath()
	c.SetColor(faint)
	c.Fill()
	if err := c.write(title, gap+18, 18, 0, rowStyle, text); err != nil {
		return err
	}
	from, to := source.from.UTC(), source.to.UTC()
	format := time.TimeOnly
	if from.YearDay() != to.YearDay() {
		format = time.DateTime
	}
	when := from.Format(time.DateTime) + " to " + to.Format(format) + " UTC"
	return c.write(when, pictureWidth-gap, 18, 1, plainStyle, faint)
}

// errEmpty says that there is nothing to show.
var errEmpty = errors.New("it has no data (--allow-empty names panels that may have none)")

// draw a panel into its box.
func (d *drawn) draw(ctx context.Context, at box) error {
	results := make([][]series, len(d.panel.Targets))
	empty := true
	for i, target := range d.panel.Targets {
		found, err := d.source.ask(ctx, target.Expr, target.Instant)
		if err != nil {
			return err
		}
		results[i] = found
		empty = empty && len(found) == 0
	}
	if d.panel.Type == kindStat && !empty {
		return d.stat(at, results) // it may color all of it
	}
	if err := d.frame(at, card); err != nil {
		return err
	}
	if empty {
		return errEmpty
	}
	inner := box{at.x + panelPadding, at.y + panelHeader, at.w - 2*panelPadding, at.h - panelHeader - panelPadding}
	switch d.panel.Type {
	case kindTimeseries:
		return d.timeseries(inner, results)
	case kindHeatmap:
		return d.heatmap(inner, results)
	case kindTable:
		return d.table(inner, results)
	}
	return fmt.Errorf("no kind of panel is %q", d.panel.Type)
}

// marks are when an expression has a value.
func (s *source) marks(ctx context.Context, exprs []string) ([]mark, error) {
	var marks []mark
	for _, expr := range exprs {
		found, err := s.ask(ctx, expr, false)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			for i, p := range one.points {
				if i > 0 && p.at.Sub(one.points[i-1].at) <= s.step() {
					marks[len(marks)-1].to = p.at
					continue
				}
				marks = append(marks, mark{p.at, p.at})
			}
		}
	}
	return marks, nil
}
