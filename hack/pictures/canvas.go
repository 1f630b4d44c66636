package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"

	"git.sr.ht/~sbinet/gg"
	"github.com/go-fonts/liberation/liberationsansbold"
	"github.com/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// density is how many dots of the picture one unit of length is.
const density = 1.5

// canvas is a picture to draw on.
type canvas struct {
	*gg.Context

	faces map[style]font.Face
}

// style is how text looks.
type style struct {
	size float64
	bold bool
}

// box is a part of a canvas.
type box struct{ x, y, w, h float64 }

func newCanvas(width, height float64) *canvas {
	c := &canvas{Context: gg.NewContext(int(width*density), int(height*density)), faces: map[style]font.Face{}}
	c.Scale(density, density)
	return c
}

// fill a box.
func (c *canvas) fill(b box, with color.Color) {
	c.SetColor(with)
	c.DrawRectangle(b.x, b.y, b.w, b.h)
	c.Fill()
}

// card is a box with a border and round corners.
func (c *canvas) card(b box, with, edge color.Color) {
	c.DrawRoundedRectangle(b.x, b.y, b.w, b.h, 3)
	c.SetColor(with)
	c.FillPreserve()
	c.SetColor(edge)
	c.SetLineWidth(density)
	c.Stroke()
}

// line from one point to another.
func (c *canvas) line(x1, y1, x2, y2, width float64, with color.Color, dashes ...float64) {
	c.SetColor(with)
	c.SetLineWidth(width * density)
	c.SetDash(dashes...)
	c.DrawLine(x1, y1, x2, y2)
	c.Stroke()
	c.SetDash()
}

// use a style for what is written next. Its letters are as large on a canvas of any
// density, so the transformation must not scale them once more.
func (c *canvas) use(s style) error {
	face, ok := c.faces[s]
	if !ok {
		data := liberationsansregular.TTF
		if s.bold {
			data = liberationsansbold.TTF
		}
		parsed, err := opentype.Parse(data)
		if err != nil {
			return err
		}
		face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: s.size * density, DPI: 72, Hinting: font.HintingNone})
		if err != nil {
			return err
		}
		c.faces[s] = face
	}
	c.SetFontFace(face)
	return nil
}

// width is how wide a text is in a style.
func (c *canvas) width(words string, s style) (float64, error) {
	if err := c.use(s); err != nil {
		return 0, err
	}
	w, _ := c.MeasureString(words)
	return w / density, nil
}

// write a text, with its capitals centered at y. Anchors of 0, 0.5 and 1 have its left,
// middle or right at x.
func (c *canvas) write(words string, x, y, anchor float64, s style, with color.Color) error {
	if err := c.use(s); err != nil {
		return err
	}
	w, _ := c.MeasureString(words)
	const capitals = 0.7 // of the size
	px, py := x*density-w*anchor, y*density+capitals/2*s.size*density
	c.Push()
	c.Identity()
	c.SetColor(with)
	c.DrawString(words, px, py)
	c.Pop()
	return nil
}

// fit is a text that is no wider than that: its end is left out, if need be.
func (c *canvas) fit(words string, width float64, s style) (string, error) {
	runes := []rune(words)
	for n := len(runes); n > 0; n-- {
		short := string(runes[:n])
		if n < len(runes) {
			short += "…"
		}
		w, err := c.width(short, s)
		if err != nil || w <= width {
			return short, err
		}
	}
	return "", nil
}

// writeFitting writes a text, but no more of it than fits.
func (c *canvas) writeFitting(words string, x, y, width float64, s style, with color.Color) error {
	words, err := c.fit(words, width, s)
	if err != nil {
		return err
	}
	return c.write(words, x, y, 0, s, with)
}

// encode is the picture as PNG, with 256 colors, which makes it a third as large: the
// others are shades at the edges of letters and lines.
func (c *canvas) encode() ([]byte, error) {
	picture, ok := c.Image().(*image.RGBA)
	if !ok {
		return nil, fmt.Errorf("a canvas of %T", c.Image())
	}
	count := map[color.RGBA]int{}
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[picture.RGBAAt(x, y)]++
		}
	}
	colors := representatives(count, 256)
	indexes := map[color.RGBA]uint8{}
	for c := range count {
		indexes[c] = uint8(colors.Index(c)) //nolint:gosec // there are no more than 256
	}
	paletted := image.NewPaletted(bounds, colors)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			paletted.SetColorIndex(x, y, indexes[picture.RGBAAt(x, y)])
		}
	}
	var out bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted)
	return out.Bytes(), err
}

// representatives are so many colors: of each region of similar ones the most frequent,
// so that a thin line keeps its color, and then whatever else is frequent.
func representatives(count map[color.RGBA]int, most int) color.Palette {
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	regions := map[[3]uint8]bool{}
	var first, others color.Palette
	for _, c := range frequent {
		region := [3]uint8{c.R >> 5, c.G >> 5, c.B >> 5}
		if regions[region] {
			others = append(others, c)
			continue
		}
		regions[region] = true
		first = append(first, c)
	}
	all := slices.Concat(first, others)
	return all[:min(most, len(all))]
}
