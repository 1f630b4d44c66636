package main

import (
	"fmt"
	"math"
)

// Lengths of a legend.
const (
	legendLine   = 16
	legendValue  = 66 // the width of a value
	legendSample = 16 // that of the color before a name
	legendGap    = 14 // between two columns
	wide         = 480
)

// legendRows is how many lines a legend has at most.
const legendRows = 6

// calcs are what a legend says of a series.
var calcs = map[string]struct {
	title string
	of    func(series) float64
}{
	"lastNotNull": {"Last", last},
	"max": {"Max", func(s series) float64 {
		high := math.Inf(-1)
		for _, p := range s.points {
			high = max(high, p.value)
		}
		return high
	}},
}

// legend draws that of some curves at the bottom of a box, and says how high it is. A
// wide panel has two columns of them.
func (d *drawn) legend(at box, all []curve) (height float64, err error) {
	columns := 1
	if at.w > wide && len(all) > 2 {
		columns = 2
	}
	lines := min(legendRows, (len(all)+columns-1)/columns)
	height = float64(lines+1)*legendLine + 4
	width := (at.w - float64(columns-1)*legendGap) / float64(columns)
	top := at.y + at.h - height + 4
	for column := range columns {
		left := at.x + (width+legendGap)*float64(column)
		if err := d.legendHead(left, top+legendLine/2, width); err != nil {
			return 0, err
		}
		for line := range lines {
			i := column*lines + line
			if i >= len(all) {
				break
			}
			y := top + (float64(line)+1.5)*legendLine
			if hidden := len(all) - lines*columns; hidden > 0 && i == lines*columns-1 {
				if err := d.write(fmt.Sprintf("and %d more", hidden+1), left+legendSample, y, 0, plainStyle, faint); err != nil {
					return 0, err
				}
				break
			}
			if err := d.legendOf(all[i], left, y, width); err != nil {
				return 0, err
			}
		}
	}
	return height, nil
}

func (d *drawn) legendHead(left, y, width float64) error {
	names := d.panel.Options.Legend.Calcs
	for i, name := range names {
		calc, ok := calcs[name]
		if !ok {
			return fmt.Errorf("no calculation %q", name)
		}
		right := left + width - float64(len(names)-1-i)*legendValue - 6
		if err := d.write(calc.title, right, y, 1, smallStyle, faint); err != nil {
			return err
		}
	}
	return nil
}

func (d *drawn) legendOf(c curve, left, y, width float64) error {
	names := d.panel.Options.Legend.Calcs
	d.fill(box{left, y - 1.5, 11, 3}, c.shade)
	room := width - legendSample - float64(len(names))*legendValue - 4
	if err := d.writeFitting(c.name, left+legendSample, y, room, plainStyle, text); err != nil {
		return err
	}
	for i, name := range names {
		value, err := format(calcs[name].of(c.series), c.Unit, c.Decimals)
		if err != nil {
			return err
		}
		right := left + width - float64(len(names)-1-i)*legendValue - 6
		if err := d.write(value, right, y, 1, plainStyle, text); err != nil {
			return err
		}
	}
	return nil
}
