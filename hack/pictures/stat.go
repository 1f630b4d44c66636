package main

import (
	"image/color"
)

// frame is the card of a panel with its title.
func (d *drawn) frame(at box, with color.RGBA) error {
	edge, ink := border, text
	if with != card {
		edge, ink = with, card
	}
	d.card(at, with, edge)
	return d.writeFitting(d.panel.Title, at.x+panelPadding, at.y+panelHeader/2, at.w-2*panelPadding, titleStyle, ink)
}

// stat is a single large value for each series.
func (d *drawn) stat(at box, results [][]series) error {
	var all []series
	for _, found := range results {
		all = append(all, found...)
	}
	shade, err := colorOf(d.panel.FieldConfig.Defaults.Thresholds.of(last(all[0])))
	if err != nil {
		return err
	}
	behind, ink := card, shade
	if d.panel.Options.ColorMode == "background" {
		behind, ink = shade, card
	}
	if err := d.frame(at, behind); err != nil {
		return err
	}
	width := (at.w - 2*panelPadding) / float64(len(all))
	for i, one := range all {
		value, err := format(last(one), d.panel.FieldConfig.Defaults.Unit, d.panel.FieldConfig.Defaults.Decimals)
		if err != nil {
			return err
		}
		x, y := at.x+panelPadding+width*(float64(i)+0.5), at.y+panelHeader+(at.h-panelHeader-panelPadding)/2
		if len(all) > 1 {
			name, err := d.fit(legend(d.panel.Targets[0].LegendFormat, one.labels), width-panelPadding, plainStyle)
			if err != nil {
				return err
			}
			if err := d.write(name, x, y-26, 0.5, plainStyle, faint); err != nil {
				return err
			}
		}
		large, err := d.largest(value, min(width-panelPadding, 300), 34)
		if err != nil {
			return err
		}
		if err := d.write(value, x, y, 0.5, large, ink); err != nil {
			return err
		}
	}
	return nil
}

// largest is the style in which a text is as wide as that, or as large.
func (c *canvas) largest(words string, width, size float64) (style, error) {
	s := style{size: size, bold: true}
	w, err := c.width(words, s)
	if err == nil && w > width {
		s.size = max(smallStyle.size, float64(int(size*width/w)))
	}
	return s, err
}

// last is the newest value of a series.
func last(s series) float64 { return s.points[len(s.points)-1].value }
