package webpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/ledongthuc/pdf"
)

// PDF files are read by a separate process, because the library was not written for hostile files. The process has no
// network, no access to the person's files, little memory and little time, as far as the system supports these limits.
const (
	pdfReaderArgument = "drawbridge-read-pdf"
	pdfTimeout        = 20 * time.Second
	pdfMemory         = 1 << 30
	maxPDFText        = 4 << 20
)

// pdfReaderEnabled is true if this program calls RunIfPDFReader. Otherwise, PDF files cannot be read, because the
// program cannot start itself again as a PDF reader. It is set once, at the start of the process.
var pdfReaderEnabled atomic.Bool

// RunIfPDFReader must be called at the beginning of main, after process.RunIfReaper. If this package started the
// process to read a PDF file, RunIfPDFReader reads the file and never returns. Otherwise it returns at once.
func RunIfPDFReader() {
	if len(os.Args) != 2 || os.Args[1] != pdfReaderArgument {
		pdfReaderEnabled.Store(true)
		return
	}
	limitMemory(pdfMemory)
	if err := runPDFReader(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runPDFReader reads a PDF file from in and writes its text to out.
func runPDFReader(in io.Reader, out io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the file is damaged")
		}
	}()
	body, err := io.ReadAll(io.LimitReader(in, MaxBytes))
	if err != nil {
		return err
	}
	text, err := pdfText(body)
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return err
}

// pdfText returns the text of a PDF file, with an empty line between pages.
func pdfText(body []byte) (string, error) {
	file, err := pdf.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i := 1; i <= file.NumPage() && all.Len() < maxPDFText; i++ {
		if i > 1 {
			all.WriteString("\n\n")
		}
		appendPage(&all, glyphsOf(file.Page(i)))
	}
	return safetext.Truncate(strings.ToValidUTF8(all.String(), "\uFFFD"), maxPDFText, safetext.Bytes, ""), nil
}

// glyphsOf returns the glyphs of a page in their order, without added line feeds. The library adds a line feed after
// each text. It decodes the line feed with the font of the text, so the result may look like another character.
func glyphsOf(page pdf.Page) (kept []pdf.Text) {
	lineFeed := map[string]string{}
	for _, name := range page.Fonts() {
		font := page.Font(name)
		base := font.BaseFont()
		base = base[strings.Index(base, "+")+1:] // without the prefix of a font subset, as in the glyphs
		lineFeed[base] = font.Encoder().Decode("\n")
	}
	all := page.Content().Text
	for i, g := range all {
		last := i == len(all)-1 || math.Abs(all[i+1].X-g.X-g.W) > 0.1 || all[i+1].Y != g.Y
		if added, ok := lineFeed[g.Font]; g.S == "\n" || ok && last && g.S == added {
			continue
		}
		kept = append(kept, g)
	}
	return kept
}

// appendPage appends the glyphs of a page in their order. It adds a line break before a glyph at another height, and a
// space for a gap between glyphs.
func appendPage(all *strings.Builder, glyphs []pdf.Text) {
	var last pdf.Text
	for i, g := range glyphs {
		size := max(g.FontSize, 1)
		switch gap := g.X - (last.X + last.W); {
		case i == 0:
		case math.Abs(g.Y-last.Y) > size/2:
			all.WriteString("\n")
			if last.Y-g.Y > 2*size {
				all.WriteString("\n") // a paragraph
			}
		case (gap > size/6 || gap < -size) && !strings.HasSuffix(last.S, " ") && !strings.HasPrefix(g.S, " "):
			all.WriteString(" ")
		}
		all.WriteString(g.S)
		last = g
	}
}

// readPDF returns the text of a PDF file. It starts another process that reads the file.
func readPDF(ctx context.Context, body []byte) (text string, err error) {
	if !pdfReaderEnabled.Load() {
		return "", errors.New("this program reads no PDF files: it does not call gateway.RunReaperProcess first in main")
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	home, err := os.MkdirTemp("", "drawbridge-pdf-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(ctx, pdfTimeout)
	defer cancel()
	userHome, _ := os.UserHomeDir() // without a home directory there are no files to protect
	p, err := process.Start(ctx, process.Spec{Command: self, Args: []string{pdfReaderArgument}, Dir: home,
		Env: []string{"GOMAXPROCS=1", "GOMEMLIMIT=512MiB"}, Grace: 100 * time.Millisecond,
		Confinement: &confine.Profile{Offline: true, Home: home, Dir: home, UserHome: userHome}})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(ctx))) }()
	stop := context.AfterFunc(ctx, func() {
		_ = p.Stdin().SetDeadline(time.Now())
		_ = p.Stdout().SetDeadline(time.Now())
	})
	defer stop()
	_, err = p.Stdin().Write(body)
	if err == nil {
		err = p.Stdin().Close()
	}
	if err == nil {
		var out []byte
		out, err = io.ReadAll(io.LimitReader(p.Stdout(), maxPDFText))
		text = string(out)
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("read the PDF file: not done within %s", pdfTimeout)
	case err != nil && len(p.Stderr()) == 0:
		return "", fmt.Errorf("read the PDF file: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	if lines := p.Stderr(); len(lines) > 0 || p.Err() != nil {
		return "", fmt.Errorf("read the PDF file: %s", safetext.Line(strings.Join(lines[:min(len(lines), 1)], "")))
	}
	return text, nil
}
