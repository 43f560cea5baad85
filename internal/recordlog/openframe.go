package recordlog

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"time"
)

// An open frame has room behind its content. Completing the frame replaces the last byte of the content by a tail,
// which is written into the room. So a record whose end becomes known later is one frame, and its later part needs no
// new space.
//
// The bytes after the header are the content, Room zeros, a copy of the content's last byte, the CRC-32C of the
// completed content (four bytes), and the length of the tail (one byte). The length is written last. While it is 0, the
// frame is not complete: its content is the original one, whatever the room contains.

const (
	// Room is the number of bytes of room in an open frame. A tail has at most Room+1 bytes.
	Room = 100
	// roomSize is the length of the room and of the three members after it.
	roomSize = Room + 1 + 4 + 1
	// openFlag is set in the length of an open frame.
	openFlag = 1 << 31
)

// A Slot is the place of an open frame, for [Log.Complete].
type Slot struct {
	// File is the number of the log's file, and At the position of the frame in it. Length is the length of the
	// content, and Sum the CRC-32C of the content without its last byte.
	File, Length int
	At           int64
	Sum          uint32
}

// An openPlace is the position of an open frame, and the time when it was appended.
type openPlace struct {
	at    int64
	since time.Time
}

// AppendRoom appends to frame the bytes after the content of an open frame. [Log.AppendOpen] fills them in.
func AppendRoom(frame []byte) []byte {
	var room [roomSize]byte
	return append(frame, room[:]...)
}

// AppendOpen is like Append for an open frame. The frame ends with the bytes of AppendRoom.
func (s *Log) AppendOpen(frame []byte) (Slot, error) {
	content := frame[FrameHeader : len(frame)-roomSize]
	if len(content) == 0 {
		return Slot{}, s.Append(frame[:FrameHeader])
	}
	last := content[len(content)-1:]
	slot := Slot{Length: len(content), Sum: crc32.Checksum(content[:len(content)-1], s.sums)}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-FrameHeader)|openFlag)
	binary.BigEndian.PutUint32(frame[4:], crc32.Update(slot.Sum, s.sums, last))
	frame[len(frame)-6] = last[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.appendFrame(frame); err != nil {
		return Slot{}, err
	}
	slot.File, slot.At = s.fileCount, s.currentFile.Size-int64(len(frame))
	s.incomplete = append(s.incomplete, openPlace{slot.At, time.Now()})
	return slot, nil
}

// Complete replaces the last byte of an open frame's content by tail. It returns false if that is no longer possible:
// PendingFiles has returned the frame, its file is closed, or the tail is too long. The frame is then unchanged, and
// the caller appends another frame. If Complete returns an error, the frame is unchanged too.
func (s *Log) Complete(slot Slot, tail []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, errClosed
	case s.current == nil, slot.File != s.fileCount:
		return false, nil
	}
	// The frame is completed now, here or by another one. A later frame is usually completed earlier than this one.
	for i := len(s.incomplete) - 1; i >= 0; i-- {
		if s.incomplete[i].at == slot.At {
			s.incomplete = slices.Delete(s.incomplete, i, i+1)
			break
		}
	}
	if slot.At < s.taken || len(tail) == 0 || len(tail) > Room+1 {
		return false, nil
	}
	var end [5]byte
	binary.BigEndian.PutUint32(end[:], crc32.Update(slot.Sum, s.sums, tail))
	end[4] = byte(len(tail))
	at := slot.At + FrameHeader + int64(slot.Length)
	if err := s.current.complete(at-1, tail, at+Room+1, end[:]); err != nil {
		return false, err
	}
	if s.o.Sync {
		if err := s.current.file.Sync(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// openContent returns the content of an open frame, completed or not; nil if the frame is damaged. It writes to b.
func openContent(b []byte) []byte {
	sums := crc32.MakeTable(crc32.Castagnoli)
	end := b[len(b)-6:]
	content := b[FrameHeader : len(b)-roomSize]
	want := binary.BigEndian.Uint32(b[4:])
	if tail := int(end[5]); tail > Room+1 {
		return nil
	} else if tail > 0 {
		content, want = b[FrameHeader:FrameHeader+len(content)-1+tail], binary.BigEndian.Uint32(end[1:])
	} else {
		content[len(content)-1] = end[0] // a completion may have begun
	}
	if crc32.Checksum(content, sums) != want {
		return nil
	}
	return content[:len(content):len(content)]
}
