package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// cells are a line of a table, by the names of columns: texts and numbers.
type cells map[string]any

// sheet is a table.
type sheet struct {
	columns []string
	lines   []cells
}

// sheetOf puts the results of all queries together: what has the same labels is one
// line. This is Grafana's transformation merge, which a single query does not need.
func sheetOf(targets []target, results [][]series) sheet {
	columns := map[string]bool{}
	byLabels := map[string]cells{}
	var order []string
	for i, found := range results {
		value := "Value"
		if len(targets) > 1 {
			value += " #" + targets[i].RefID
		}
		for _, one := range found {
			key := fmt.Sprint(one.labels) // in the order of the names
			line := byLabels[key]
			if line == nil {
				line = cells{}
				byLabels[key] = line
				order = append(order, key)
			}
			for name, text := range one.labels {
				line[name], columns[name] = text, true
			}
			line[value], columns[value] = last(one), true
		}
	}
	s := sheet{columns: slices.Sorted(maps.Keys(columns))}
	for _, key := range order {
		s.lines = append(s.lines, byLabels[key])
	}
	return s
}

// transform does what the panel says.
func (s sheet) transform(all []transformation) (sheet, error) {
	for _, t := range all {
		switch t.ID {
		case "merge": // done
		case "organize":
			s = s.organize(t)
		default:
			return s, fmt.Errorf("a transformation %q", t.ID)
		}
	}
	return s, nil
}

// organize leaves columns out, and orders and renames the others.
func (s sheet) organize(t transformation) sheet {
	o := t.Options
	columns := slices.DeleteFunc(slices.Clone(s.columns), func(name string) bool { return o.ExcludeByName[name] })
	index := func(name string) int {
		if i, ok := o.IndexByName[name]; ok {
			return i
		}
		return len(o.IndexByName)
	}
	slices.SortStableFunc(columns, func(a, b string) int { return cmp.Compare(index(a), index(b)) })
	renamed := func(name string) string { return cmp.Or(o.RenameByName[name], name) }
	var result sheet
	for _, name := range columns {
		result.columns = append(result.columns, renamed(name))
	}
	for _, line := range s.lines {
		kept := cells{}
		for _, name := range columns {
			if value, ok := line[name]; ok {
				kept[renamed(name)] = value
			}
		}
		result.lines = append(result.lines, kept)
	}
	return result
}

// sort by a column: numbers as numbers.
func (s sheet) sort(column string, descending bool) {
	slices.SortStableFunc(s.lines, func(a, b cells) int {
		x, isNumber := a[column].(float64)
		y, alsoNumber := b[column].(float64)
		order := strings.Compare(fmt.Sprint(a[column]), fmt.Sprint(b[column]))
		if isNumber && alsoNumber {
			order = cmp.Compare(x, y)
		}
		if descending {
			return -order
		}
		return order
	})
}

const tableLine = 22

// table draws lines of cells below the names of their columns.
func (d *drawn) table(at box, results [][]series) error {
	s, err := sheetOf(d.panel.Targets, results).transform(d.panel.Transformations)
	if err != nil {
		return err
	}
	for _, by := range d.panel.Options.SortBy {
		s.sort(by.DisplayName, by.Desc)
	}
	widths, err := d.columnWidths(s, at.w)
	if err != nil {
		return err
	}
	room := int(at.h/tableLine) - 1
	lines := s.lines
	if len(lines) > room {
		lines = lines[:room-1]
	}
	y := at.y + tableLine/2
	x := at.x
	for i, name := range s.columns {
		if err := d.writeFitting(name, x, y, widths[i]-8, style{size: 11, bold: true}, linkText); err != nil {
			return err
		}
		x += widths[i]
	}
	for _, line := range lines {
		y += tableLine
		d.line(at.x, y-tableLine/2, at.x+at.w, y-tableLine/2, 0.7, gridLine)
		if err := d.cells(s, line, widths, at.x, y); err != nil {
			return err
		}
	}
	if hidden := len(s.lines) - len(lines); hidden > 0 {
		return d.write(fmt.Sprintf("and %d more", hidden), at.x, y+tableLine, 0, plainStyle, faint)
	}
	return nil
}

func (d *drawn) cells(s sheet, line cells, widths []float64, x, y float64) error {
	for i, column := range s.columns {
		l, err := d.panel.lookOf(column)
		if err != nil {
			return err
		}
		words, err := cell(line[column], l)
		if err != nil {
			return err
		}
		ink := text
		if value, ok := line[column].(float64); ok && l.colored {
			if ink, err = colorOf(l.Thresholds.of(value)); err != nil {
				return err
			}
		}
		if l.link {
			ink = linkText
		}
		if err := d.writeFitting(words, x, y, widths[i]-8, plainStyle, ink); err != nil {
			return err
		}
		x += widths[i]
	}
	return nil
}

// cell is the text in one.
func cell(value any, l look) (string, error) {
	switch value := value.(type) {
	case float64:
		return format(value, l.Unit, l.Decimals)
	case string:
		return value, nil
	}
	return l.NoValue, nil
}

// columnWidths gives each column what its texts need, and a share of the rest.
func (d *drawn) columnWidths(s sheet, room float64) ([]float64, error) {
	widths := make([]float64, len(s.columns))
	sum := 0.0
	for i, column := range s.columns {
		l, err := d.panel.lookOf(column)
		if err != nil {
			return nil, err
		}
		longest := []string{column}
		for _, line := range s.lines {
			words, err := cell(line[column], l)
			if err != nil {
				return nil, err
			}
			longest = append(longest, words)
		}
		for _, words := range longest {
			w, err := d.width(words, style{size: 11, bold: true})
			if err != nil {
				return nil, err
			}
			widths[i] = max(widths[i], w+16)
		}
		sum += widths[i]
	}
	for i := range widths {
		if sum > room {
			widths[i] *= room / sum
		} else {
			widths[i] += (room - sum) / float64(len(widths))
		}
	}
	return widths, nil
}
