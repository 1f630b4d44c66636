package main

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"
)

// bucket is a line of a heatmap: what happened at each moment up to le, and not up to
// the bucket below.
type bucket struct {
	series

	le float64
}

// buckets are those of a cumulative histogram, taken apart.
func buckets(found []series) ([]bucket, error) {
	var all []bucket
	for _, one := range found {
		le, err := strconv.ParseFloat(one.labels["le"], 64)
		if err != nil {
			return nil, err
		}
		all = append(all, bucket{series: one, le: le})
	}
	slices.SortFunc(all, func(a, b bucket) int { return cmp.Compare(a.le, b.le) })
	below := map[time.Time]float64{}
	for _, b := range all {
		for i, p := range b.points {
			b.points[i].value = max(0, p.value-below[p.at])
			below[p.at] = p.value
		}
	}
	return all, nil
}

// heatmap draws buckets as lines of cells: the darker, the more.
func (d *drawn) heatmap(at box, results [][]series) error {
	all, err := buckets(results[0])
	if err != nil {
		return err
	}
	high := 0.0
	for _, b := range all {
		for _, p := range b.points {
			high = max(high, p.value)
		}
	}
	if high == 0 {
		return errEmpty
	}
	const scaleHeight = 30
	a := axis{min: 0, max: float64(len(all))}
	p := plot{box: box{at.x + 52, at.y + 6, at.w - 58, at.h - 24 - scaleHeight}, axis: a, from: d.source.from, to: d.source.to}
	if err := d.timeAxis(p); err != nil {
		return err
	}
	cell := p.h / float64(len(all))
	for i, b := range all {
		for _, point := range b.points {
			if point.value <= 0 || point.at.Equal(p.to) {
				continue
			}
			x := p.atX(point.at)
			next := p.atX(point.at.Add(d.source.step()))
			d.fill(box{x, p.y + p.h - float64(i+1)*cell, min(next, p.x+p.w) - x + 0.3, cell - 0.5}, heat(point.value/high))
		}
	}
	if err := d.bucketNames(p, all); err != nil {
		return err
	}
	if err := d.heatScale(box{p.x, at.y + at.h - 16, 180, 8}, high); err != nil {
		return err
	}
	return d.annotate(p)
}

// bucketNames writes the upper ends of some buckets, as many as there is room for.
func (d *drawn) bucketNames(p plot, all []bucket) error {
	cell := p.h / float64(len(all))
	next := math.Inf(1)
	for i, b := range all {
		y := p.y + p.h - float64(i+1)*cell
		if math.IsInf(b.le, 1) || y > next {
			continue
		}
		words, err := format(b.le, d.panel.Options.YAxis.Unit, nil)
		if err != nil {
			return err
		}
		if err := d.write(words, p.x-6, y, 1, smallStyle, faint); err != nil {
			return err
		}
		d.line(p.x-3, y, p.x, y, 0.7, border)
		next = y - 17
	}
	return nil
}

// heatScale says what the colors mean.
func (d *drawn) heatScale(at box, high float64) error {
	const steps = 32
	for i := range steps {
		d.fill(box{at.x + at.w*float64(i)/steps, at.y, at.w/steps + 0.3, at.h}, heat((float64(i)+1)/steps))
	}
	words, err := format(high, d.panel.FieldConfig.Defaults.Unit, nil)
	if err != nil {
		return err
	}
	return d.write("up to "+words, at.x+at.w+8, at.y+at.h/2, 0, smallStyle, faint)
}

// heat is the color of a share of the most. A root lets little be seen beside much.
func heat(share float64) color.Color {
	stops := []color.RGBA{rgb(0xfff0e0), rgb(0xfdd0a2), rgb(0xfd8d3c), rgb(0xd94801), rgb(0x7f2704)}
	at := math.Round(math.Sqrt(min(1, share))*63) / 63 * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	part := at - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(float64(a)*(1-part) + float64(b)*part) }
	return color.RGBA{
		mix(stops[i].R, stops[i+1].R), mix(stops[i].G, stops[i+1].G), mix(stops[i].B, stops[i+1].B), 0xff,
	}
}
