//go:build amd64 || arm64

package process

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"golang.org/x/sys/unix"
)

// The flags of a spec, as in supervisor.h.
const (
	specConfined             = 1
	specCapabilitiesRequired = 2
)

// A supervisorSpec is struct spec of supervisor.h: the beginning of the file that describes a program.
type supervisorSpec struct {
	Path, Directory, Arguments, Environment uint64
	Filter, FilterLength                    uint64
	KeptCapabilities, ProcRights, Flags     uint64
}

// describeLaunch returns the order that starts a program, the file that describes the program, and the ruleset of a
// confined program, otherwise nil. The caller must close both files.
func describeLaunch(l launch) (order supervisorOrder, spec, rules *os.File, err error) {
	order = supervisorOrder{Version: supervisorVersion, Grace: uint64(l.grace.Milliseconds())}
	environment := l.cmd.Environ() // without repeated names
	directory := l.cmd.Dir
	var restrictions confine.Restrictions
	if l.profile != nil {
		if restrictions, err = l.profile.Restrictions(l.cmd.Path, environment); err != nil {
			return order, nil, nil, err
		}
		directory, rules = restrictions.Dir, restrictions.Ruleset
		order.Flags |= orderNamespaces
		if os.Geteuid() != 0 {
			order.Flags |= orderUserNamespace
		}
		if rules != nil {
			order.Flags |= orderRules
		}
	}
	content, err := encodeSpec(l, directory, environment, restrictions)
	if err == nil {
		spec, err = sealedFile("drawbridge-program", content, unix.MFD_NOEXEC_SEAL)
	}
	if err != nil {
		closeAll([]*os.File{rules})
		return order, nil, nil, err
	}
	return order, spec, rules, nil
}

// encodeSpec returns the content of the file that describes a program.
func encodeSpec(l launch, directory string, environment []string, restrictions confine.Restrictions) ([]byte, error) {
	if directory == "" {
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		directory = here
	}
	texts := slices.Concat([]string{l.cmd.Path, directory}, l.cmd.Args, environment)
	if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "\x00") }) {
		return nil, errors.New("an argument or a variable of the environment contains a NUL byte")
	}
	spec := supervisorSpec{KeptCapabilities: restrictions.KeptCapabilities, ProcRights: restrictions.ProcRights}
	if l.profile != nil {
		spec.Flags |= specConfined
	}
	if restrictions.CapabilitiesRequired {
		spec.Flags |= specCapabilitiesRequired
	}
	// The lists come before the texts, since they must be aligned.
	size := uint64(binary.Size(spec))
	spec.Arguments = size
	spec.Environment = spec.Arguments + 8*uint64(len(l.cmd.Args)+1)
	at := spec.Environment + 8*uint64(len(environment)+1)
	if len(restrictions.Filter) > 0 {
		const instruction = 8
		spec.Filter, spec.FilterLength = at, uint64(len(restrictions.Filter)/instruction)
		at += uint64(len(restrictions.Filter))
	}
	offsets := make([]uint64, len(texts))
	for i, text := range texts {
		offsets[i] = at
		at += uint64(len(text)) + 1
	}
	spec.Path, spec.Directory = offsets[0], offsets[1]
	content := make([]byte, 0, at)
	content, err := binary.Append(content, binary.NativeEndian, spec)
	if err != nil {
		return nil, err
	}
	arguments, variables := offsets[2:2+len(l.cmd.Args)], offsets[2+len(l.cmd.Args):]
	for _, offset := range slices.Concat(arguments, []uint64{0}, variables, []uint64{0}) {
		content = binary.NativeEndian.AppendUint64(content, offset)
	}
	content = append(content, restrictions.Filter...)
	for _, text := range texts {
		content = append(append(content, text...), 0)
	}
	return content, nil
}
