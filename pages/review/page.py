"""What I know: the questions on every chapter, and which of them are due."""

from ui.chapter.contents import all_chapters
from ui.chapter.frame import Frame
from ui.chapter.review import draw_review

frame = Frame("review")
frame.question()
draw_review(all_chapters()[1:], "overview", "review-overview")
