package main

import (
	"math"
	"time"
)

// axis is the scale of values.
type axis struct {
	min, max float64
	log      bool
	ticks    []float64
}

// share is where a value is between the ends, 0 to 1.
func (a axis) share(value float64) float64 {
	if a.log {
		return (math.Log10(max(value, a.min)) - math.Log10(a.min)) / (math.Log10(a.max) - math.Log10(a.min))
	}
	return (value - a.min) / (a.max - a.min)
}

// linearAxis has about so many ticks, at numbers that are easily read: in the scale of
// the unit in which they are written.
func linearAxis(low, high float64, ticks int, unit string, whole bool) axis {
	if high <= low {
		high = low + 1
	}
	factor := scaleOf(high, unit)
	step := niceStep((high-low)/float64(ticks)*factor) / factor
	if whole {
		step = max(1, math.Ceil(step))
	}
	a := axis{min: math.Floor(low/step+1e-9) * step, max: math.Ceil(high/step-1e-9) * step}
	for v := a.min; v <= a.max+step/2; v += step {
		a.ticks = append(a.ticks, math.Round(v/step)*step)
	}
	return a
}

// niceStep is 1, 2 or 5 times a power of ten, and no less than that.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// logAxis has a tick at each power of ten.
func logAxis(low, high float64) axis {
	from, to := math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
	a := axis{min: math.Pow(10, from), max: math.Pow(10, to), log: true}
	for power := from; power <= to; power++ {
		a.ticks = append(a.ticks, math.Pow(10, power))
	}
	return a
}

// timeTicks are moments between two, no more than so many.
func timeTicks(from, to time.Time, most int) (ticks []time.Time, layout string) {
	step := niceTimes[len(niceTimes)-1]
	for _, nice := range niceTimes {
		if to.Sub(from)/nice <= time.Duration(most) {
			step = nice
			break
		}
	}
	for at := from.Truncate(step); !at.After(to); at = at.Add(step) {
		if !at.Before(from) {
			ticks = append(ticks, at)
		}
	}
	switch {
	case step < time.Minute:
		return ticks, time.TimeOnly
	case step < 24*time.Hour:
		return ticks, "15:04"
	}
	return ticks, "01-02"
}
