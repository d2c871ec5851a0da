# SPDX-License-Identifier: Apache-2.0
"""The numbers that the catalog keeps, for tests that read its tables."""

# of marks: src/catalog/mark/mark.h
MARKED, CHECKING, PURGING, PURGED, REPRIEVED, DEAD, LOST = range(1, 8)
# of files: src/catalog/file/file.h
FILE_PENDING, FILE_SCANNING, FILE_LIVE, FILE_DELETED, FILE_PURGED, FILE_EXPIRED = range(1, 7)
