package tui

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif"  // decodes pictures
	_ "image/jpeg" // decodes pictures
	"image/png"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A graphics is a protocol with which a terminal shows pictures.
type graphics int

const (
	noGraphics graphics = iota
	// kittyGraphics is the protocol of kitty, which Ghostty has too
	// (https://sw.kovidgoyal.net/kitty/graphics-protocol/).
	kittyGraphics
	// itermGraphics is the protocol of iTerm2, which WezTerm has too (https://iterm2.com/documentation-images.html).
	itermGraphics
)

// graphicsOf returns the protocol of the terminal that the environment names. A terminal multiplexer shows no pictures.
func graphicsOf(env []string) graphics {
	switch {
	case variable(env, "TMUX") != "" || variable(env, "STY") != "":
		return noGraphics
	case variable(env, "KITTY_WINDOW_ID") != "" || variable(env, "TERM") == "xterm-kitty" || variable(env, "TERM_PROGRAM") == "ghostty":
		return kittyGraphics
	case variable(env, "TERM_PROGRAM") == "iTerm.app" || variable(env, "TERM_PROGRAM") == "WezTerm":
		return itermGraphics
	}
	return noGraphics
}

const (
	// maxPictures is the maximum number of pictures of a result that are shown.
	maxPictures = 4
	// maxPixels is the maximum number of pixels of a picture that is shown: decoding takes memory for each.
	maxPixels = 4 << 20
	// maxPictureRows and maxPictureColumns are the maximum size of a picture in cells. cellWidth is the usual width of a
	// cell in pixels; a cell is twice as high.
	maxPictureRows    = 15
	maxPictureColumns = 60
	cellWidth         = 8
)

// A picture is an image as it is sent to the terminal.
type picture struct {
	code          string // a PNG in base64; empty if the image is not shown
	width, height int    // the size of the image in pixels; the PNG may be smaller
}

// pictures makes the pictures of a result. It takes long for large images, so the loop of the program must not call it.
func (g graphics) pictures(result *drawbridge.ToolResult) (all []picture) {
	if g == noGraphics || result == nil {
		return nil
	}
	for _, image := range result.Images[:min(len(result.Images), maxPictures)] {
		p, err := newPicture(image.Data)
		if err != nil {
			p = picture{} // the type of the image is shown
		}
		all = append(all, p)
	}
	return all
}

// newPicture makes a picture from the bytes of a server, which do not reach the decoder of the terminal: the PNG is
// written by this program.
func newPicture(data []byte) (picture, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return picture{}, err
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height {
		return picture{}, errors.New("the picture is too large")
	}
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return picture{}, err
	}
	if decoded.Bounds().Empty() {
		return picture{}, errors.New("the picture has no pixels")
	}
	var b bytes.Buffer
	if err := png.Encode(&b, scaled(decoded)); err != nil {
		return picture{}, err
	}
	return picture{base64.StdEncoding.EncodeToString(b.Bytes()), decoded.Bounds().Dx(), decoded.Bounds().Dy()}, nil
}

// scaled returns an image with at most the pixels that the largest picture has on the screen. A pixel of it is the mean of
// the pixels that it stands for.
func scaled(p image.Image) *image.RGBA {
	const maxWidth, maxHeight = maxPictureColumns * cellWidth, maxPictureRows * cellWidth * 2
	width, height := p.Bounds().Dx(), p.Bounds().Dy()
	full := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(full, full.Rect, p, p.Bounds().Min, draw.Src)
	w, h := width, height
	if w > maxWidth {
		w, h = maxWidth, max(1, height*maxWidth/width)
	}
	if h > maxHeight {
		w, h = max(1, width*maxHeight/height), maxHeight
	}
	if w == width && h == height {
		return full
	}
	small := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			from := image.Rect(x*width/w, y*height/h, (x+1)*width/w, (y+1)*height/h)
			small.SetRGBA(x, y, mean(full, from))
		}
	}
	return small
}

// mean returns the mean of the pixels of a part of an image.
func mean(p *image.RGBA, part image.Rectangle) color.RGBA {
	var sum [4]int
	for y := part.Min.Y; y < part.Max.Y; y++ {
		row := p.Pix[p.PixOffset(part.Min.X, y):p.PixOffset(part.Max.X, y)]
		for i, value := range row {
			sum[i%4] += int(value)
		}
	}
	n := part.Dx() * part.Dy()
	return color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), uint8(sum[3] / n)}
}

// imageLines returns the lines of the images of a result: their types, and the pictures where the terminal can show them.
func (t *transcript) imageLines(images []drawbridge.Image, pictures []picture) (lines []string) {
	for i, image := range images {
		lines = append(lines, t.paint(dimStyle, cut("  [Image: "+safetext.Line(image.MIMEType)+"]", t.width)))
		if i < len(pictures) && pictures[i].code != "" && t.pictureRows >= 2 {
			lines = append(lines, t.pictureLine(pictures[i]))
		}
	}
	return lines
}

// pictureLine returns a picture. It is one element with a line break for each of its rows, because it must be printed at
// once.
func (t *transcript) pictureLine(p picture) string {
	columns := max(1, min(t.width-2, maxPictureColumns, (p.width+cellWidth-1)/cellWidth))
	rows := max(1, columns*p.height/p.width/2)
	if limit := min(t.pictureRows, maxPictureRows); rows > limit {
		rows = limit
		columns = max(1, min(columns, rows*2*p.width/p.height))
	}
	var b strings.Builder
	b.WriteString("  ")
	if t.graphics == kittyGraphics {
		writeKitty(&b, p.code, columns, rows)
	} else {
		fmt.Fprintf(&b, "\x1b]1337;File=inline=1;doNotMoveCursor=1;preserveAspectRatio=1;width=%d;height=%d:%s\x07", columns, rows, p.code)
	}
	return b.String() + strings.Repeat("\n", rows-1)
}

// writeKitty writes a picture in pieces, as the protocol demands. The cursor stays, and the terminal does not answer.
func writeKitty(b *strings.Builder, code string, columns, rows int) {
	const piece = 4096
	for at := 0; at < len(code); at += piece {
		end, more := min(at+piece, len(code)), 0
		if end < len(code) {
			more = 1
		}
		if at == 0 {
			fmt.Fprintf(b, "\x1b_Ga=T,f=100,q=2,C=1,c=%d,r=%d,m=%d;%s\x1b\\", columns, rows, more, code[at:end])
			continue
		}
		fmt.Fprintf(b, "\x1b_Gm=%d;%s\x1b\\", more, code[at:end])
	}
}
